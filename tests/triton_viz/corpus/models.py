"""Kernels as models and their servers have them: sequences of many lengths, paged caches, states, experts."""

import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.case import Arguments, Case, integers, normal

# --- attention over sequences of different lengths, packed one after the other ---


@triton.jit
def varlen_attention(
    q, k, v, out, lse, starts_q, starts_k, scale, stride_t, stride_h, heads, window,
    CAUSAL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    first_q = tl.load(starts_q + batch)
    len_q = tl.load(starts_q + batch + 1) - first_q
    if block * M >= len_q:
        return
    first_k = tl.load(starts_k + batch)
    len_k = tl.load(starts_k + batch + 1) - first_k
    rows = block * M + tl.arange(0, M)
    d = tl.arange(0, D)
    at_q = (first_q + rows)[:, None] * stride_t + head * stride_h + d[None, :]
    query = tl.load(q + at_q, mask=rows[:, None] < len_q, other=0.0)
    highest = tl.full([M], float("-inf"), tl.float32)
    total = tl.zeros([M], tl.float32)
    acc = tl.zeros([M, D], tl.float32)
    shift = len_k - len_q
    low = 0
    high = len_k
    if CAUSAL:
        high = tl.minimum(len_k, (block + 1) * M + shift)
    if window > 0:
        low = tl.maximum(0, block * M + shift - window) // N * N
    for start in tl.range(low, high, N, num_stages=2):
        cols = tl.multiple_of(start, N) + tl.arange(0, N)
        at_k = (first_k + cols)[:, None] * stride_t + head * stride_h + d[None, :]
        keys = tl.load(k + at_k, mask=cols[:, None] < len_k, other=0.0)
        values = tl.load(v + at_k, mask=cols[:, None] < len_k, other=0.0)
        score = tl.dot(query, keys.T) * scale
        keep = (cols < len_k)[None, :] & (rows < len_q)[:, None]
        if CAUSAL:
            keep &= rows[:, None] + shift >= cols[None, :]
        if window > 0:
            keep = keep & (rows[:, None] + shift - cols[None, :] <= window)
        score = tl.where(keep, score, float("-inf"))
        higher = tl.maximum(highest, tl.max(score, 1))
        safe = tl.where(higher == float("-inf"), 0.0, higher)
        p = tl.exp(score - safe[:, None])
        old = tl.exp(highest - safe)
        total = total * old + tl.sum(p, 1)
        acc = acc * old[:, None] + tl.dot(p, values)
        highest = higher
    total = tl.where(total == 0, 1.0, total)
    tl.store(lse + (first_q + rows) * heads + head, highest + tl.log(total), mask=rows < len_q)
    tl.store(out + at_q, acc / total[:, None], mask=rows[:, None] < len_q)


def packed(lengths_q: list[int], lengths_k: list[int], window: int, causal: bool) -> Case:
    starts_q, starts_k = ([0, *torch.tensor(n).cumsum(0).tolist()] for n in (lengths_q, lengths_k))

    def arguments(g: torch.Generator) -> Arguments:
        q, k, v = (normal(g, starts[-1], 2, 16) for starts in (starts_q, starts_k, starts_k))
        return {
            "q": q, "k": k, "v": v, "out": torch.zeros_like(q), "lse": torch.zeros(len(q), 2),
            "starts_q": torch.tensor(starts_q, dtype=torch.int32),
            "starts_k": torch.tensor(starts_k, dtype=torch.int32),
            "scale": 0.25, "stride_t": 32, "stride_h": 16, "heads": 2, "window": window,
            "CAUSAL": causal, "M": 16, "N": 16, "D": 16,
        }  # fmt: skip

    def expected(a: Arguments) -> dict[str, torch.Tensor]:
        out, lse = torch.zeros_like(a["q"]), torch.zeros(len(a["q"]), 2)
        for b in range(len(lengths_q)):
            of_q, of_k = slice(*starts_q[b : b + 2]), slice(*starts_k[b : b + 2])
            q, k, v = a["q"][of_q], a["k"][of_k], a["v"][of_k]
            score = torch.einsum("qhd,khd->hqk", q, k) * 0.25
            behind = torch.arange(len(q))[:, None] + len(k) - len(q) - torch.arange(len(k))
            hidden = (behind < 0) & causal | (behind > window) & (window > 0)
            score = score.masked_fill(hidden, float("-inf"))
            out[of_q] = torch.einsum("hqk,khd->qhd", torch.softmax(score, -1).nan_to_num(0), v)
            lse[of_q] = torch.logsumexp(score, -1).T
        return {"out": out, "lse": lse}

    name = f"varlen_attention_{len(lengths_q)}_{window}_{causal}"
    grid = (triton.cdiv(max(lengths_q), 16), len(lengths_q) * 2)
    return Case(name, varlen_attention, arguments, grid, expected, 1e-4, 1e-4, reorders=True)


# --- decoding from a cache in pages ---


@triton.jit
def paged_decode(
    q, keys, values, out, table, lengths, scale, stride_page, stride_slot, stride_head, most_pages,
    GROUP: tl.constexpr, PAGE: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(0)
    head = tl.program_id(1)
    length = tl.load(lengths + batch)
    row = (batch * tl.num_programs(1) + head) * GROUP + tl.arange(0, GROUP)
    d = tl.arange(0, D)
    query = tl.load(q + row[:, None] * D + d[None, :])
    highest = tl.full((GROUP,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((GROUP,), dtype=tl.float32)
    acc = tl.zeros((GROUP, D), dtype=tl.float32)
    for i in range(tl.cdiv(length, PAGE)):
        page = tl.load(table + batch * most_pages + i).to(tl.int64)
        slot = tl.arange(0, PAGE)
        here = i * PAGE + slot < length
        at = page * stride_page + head * stride_head + slot[:, None] * stride_slot + d[None, :]
        key = tl.load(keys + at, mask=here[:, None], other=0.0)
        score = tl.sum(query[:, None, :] * key[None, :, :], axis=2) * scale
        score = tl.where(here[None, :], score, float("-inf"))
        higher = tl.maximum(highest, tl.max(score, axis=1))
        old = tl.exp(highest - higher)
        p = tl.exp(score - higher[:, None])
        value = tl.load(values + at, mask=here[:, None], other=0.0)
        acc = acc * old[:, None] + tl.sum(p[:, :, None] * value[None, :, :], axis=1)
        total = total * old + tl.sum(p, axis=1)
        highest = higher
    tl.store(out + row[:, None] * D + d[None, :], acc / total[:, None])


LENGTHS = [1, 8, 23, 40]


def paged_arguments(g: torch.Generator) -> Arguments:
    pages = torch.randperm(30, generator=g)[: 4 * 5].reshape(4, 5).to(torch.int32)
    for b, length in enumerate(LENGTHS):
        pages[b, triton.cdiv(length, 8) :] = -1  # never to be read
    cache = normal(g, 2, 30, 8, 2, 16)
    return {
        "q": normal(g, 4, 8, 16), "keys": cache[0], "values": cache[1], "out": torch.zeros(4, 8, 16),
        "table": pages, "lengths": torch.tensor(LENGTHS, dtype=torch.int32), "scale": 0.25,
        "stride_page": 256, "stride_slot": 32, "stride_head": 16, "most_pages": 5,
        "GROUP": 4, "PAGE": 8, "D": 16,
    }  # fmt: skip


def paged_expected(a: Arguments) -> dict[str, torch.Tensor]:
    out = torch.zeros(4, 8, 16)
    for b, length in enumerate(LENGTHS):
        pages = a["table"][b, : triton.cdiv(length, 8)].long()
        k, v = (a[name][pages].reshape(-1, 2, 16)[:length] for name in ("keys", "values"))
        for head in range(8):
            p = torch.softmax(k[:, head // 4] @ a["q"][b, head] * 0.25, 0)
            out[b, head] = p @ v[:, head // 4]
    return {"out": out}


# --- a state that is carried along a sequence ---


@triton.jit
def carried(decay_1, state_1, decay_2, state_2):
    return decay_1 * decay_2, decay_2 * state_1 + state_2


@triton.jit
def selective_scan(x, dt, a, b, c, y, length, channels, N: tl.constexpr, BLOCK: tl.constexpr):
    channel = tl.program_id(0)
    n = tl.arange(0, N)
    rate = -tl.exp(tl.load(a + channel * N + n))
    state = tl.zeros((N,), dtype=tl.float32)
    for start in range(0, length, BLOCK):
        t = start + tl.arange(0, BLOCK)
        inside = t < length
        step = tl.load(dt + t * channels + channel, mask=inside, other=0.0)
        step = tl.where(inside, tl.where(step <= 20.0, tl.log(1 + tl.exp(step)), step), 0.0)
        given = tl.load(x + t * channels + channel, mask=inside, other=0.0)
        at = t[:, None] * N + n[None, :]
        into = tl.load(b + at, mask=inside[:, None], other=0.0) * (step * given)[:, None]
        decay = tl.exp(step[:, None] * rate[None, :])
        decays, states = tl.associative_scan((decay, into), 0, carried)
        states += decays * state[None, :]
        out_of = tl.load(c + at, mask=inside[:, None], other=0.0)
        tl.store(y + t * channels + channel, tl.sum(states * out_of, axis=1), mask=inside)
        state = tl.sum(tl.where((tl.arange(0, BLOCK) == BLOCK - 1)[:, None], states, 0.0), axis=0)


def scan_arguments(g: torch.Generator) -> Arguments:
    return {
        "x": normal(g, 21, 3), "dt": normal(g, 21, 3), "a": normal(g, 3, 4), "b": normal(g, 21, 4),
        "c": normal(g, 21, 4), "y": torch.zeros(21, 3), "length": 21, "channels": 3, "N": 4, "BLOCK": 8,
    }  # fmt: skip


def scan_expected(a: Arguments) -> dict[str, torch.Tensor]:
    state, y = torch.zeros(3, 4), torch.zeros(21, 3)
    for t in range(21):
        step = torch.nn.functional.softplus(a["dt"][t])
        state = torch.exp(-step[:, None] * a["a"].exp()) * state + (step * a["x"][t])[:, None] * a["b"][t]
        y[t] = state @ a["c"][t]
    return {"y": y}


@triton.jit
def gated_linear_attention(q, k, v, gate, out, length, scale, D: tl.constexpr, T: tl.constexpr):
    head = tl.program_id(0)
    first = head * length * D
    dq = tl.make_tensor_descriptor(q + first, [length, D], [D, 1], [T, D])
    dk = tl.make_tensor_descriptor(k + first, [length, D], [D, 1], [T, D])
    dv = tl.make_tensor_descriptor(v + first, [length, D], [D, 1], [T, D])
    do = tl.make_tensor_descriptor(out + first, [length, D], [D, 1], [T, D])
    state = tl.zeros([D, D], dtype=tl.float32)
    for start in range(0, length, T):
        query = dq.load([start, 0])
        key = dk.load([start, 0])
        value = dv.load([start, 0])
        t = start + tl.arange(0, T)
        log_decay = tl.load(gate + head * length + t, mask=t < length, other=0.0)
        since = tl.cumsum(log_decay, 0)
        until = tl.cumsum(log_decay, 0, reverse=True) - log_decay
        inner = tl.dot(query, key.T) * tl.exp(since[:, None] - since[None, :])
        inner = tl.where(tl.arange(0, T)[:, None] >= tl.arange(0, T)[None, :], inner, 0.0)
        result = tl.dot(query * tl.exp(since)[:, None], state) + tl.dot(inner, value)
        do.store([start, 0], result * scale)
        state = state * tl.exp(tl.sum(log_decay)) + tl.dot((key * tl.exp(until)[:, None]).T, value)


def linear_arguments(g: torch.Generator) -> Arguments:
    return {
        "q": normal(g, 3, 37, 16), "k": normal(g, 3, 37, 16), "v": normal(g, 3, 37, 16),
        "gate": -normal(g, 3, 37).abs(), "out": torch.zeros(3, 37, 16), "length": 37, "scale": 0.5,
        "D": 16, "T": 16,
    }  # fmt: skip


def linear_expected(a: Arguments) -> dict[str, torch.Tensor]:
    out, state = torch.zeros(3, 37, 16), torch.zeros(3, 16, 16)
    for t in range(37):
        state = state * a["gate"][:, t].exp()[:, None, None]
        state = state + a["k"][:, t, :, None] * a["v"][:, t, None, :]
        out[:, t] = torch.einsum("hd,hde->he", a["q"][:, t], state) * 0.5
    return {"out": out}


# --- experts: where each token goes ---


@triton.jit
def count_experts(chosen, ends, numel, EXPERTS: tl.constexpr, PAD: tl.constexpr, BLOCK: tl.constexpr):
    counts = tl.zeros((EXPERTS,), dtype=tl.int32)
    for start in range(0, numel, BLOCK):
        at = start + tl.arange(0, BLOCK)
        expert = tl.load(chosen + at, mask=at < numel, other=0)
        counts += tl.histogram(expert, EXPERTS, mask=at < numel)
    padded = tl.cdiv(counts, PAD) * PAD
    tl.store(ends + tl.arange(0, EXPERTS), tl.cumsum(padded, 0))


def count_expected(a: Arguments) -> dict[str, torch.Tensor]:
    counts = torch.bincount(a["chosen"], minlength=8)
    return {"ends": ((counts + 3) // 4 * 4).cumsum(0).to(torch.int32)}


@triton.jit
def sort_tokens(chosen, starts, taken, out, numel, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < numel
    expert = tl.load(chosen + at, mask=inside, other=0)
    rank = tl.atomic_add(taken + expert, 1, mask=inside)
    place = tl.load(starts + expert, mask=inside, other=0) + rank
    tl.store(out + place, at, mask=inside)


def sort_arguments(g: torch.Generator) -> Arguments:
    chosen = integers(g, 0, 8, 37)
    counts = torch.bincount(chosen, minlength=8)
    return {
        "chosen": chosen, "starts": (counts.cumsum(0) - counts).to(torch.int32),
        "taken": torch.zeros(8, dtype=torch.int32), "out": torch.full((37,), -1, dtype=torch.int32),
        "numel": 37, "BLOCK": 8,
    }  # fmt: skip


def sort_expected(a: Arguments) -> dict[str, torch.Tensor]:
    # Programs run in the order of their ids where order matters, so tokens stay in order, too.
    return {
        "out": torch.sort(a["chosen"], stable=True).indices.to(torch.int32),
        "taken": torch.bincount(a["chosen"], minlength=8).to(torch.int32),
    }


# --- four bits a number, and picking a token ---


@triton.jit
def pack_four_bits(x, scales, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * width + at, at < width, other=0.0)
    scale = tl.max(tl.abs(value), axis=0) / 7.0
    tl.store(scales + row, scale)
    number = tl.extra.cuda.libdevice.rint(value / scale).to(tl.int8)
    low, high = tl.split(tl.reshape(number, (BLOCK // 2, 2)))
    both = (low & 0xF) | ((high & 0xF) << 4)
    half = tl.arange(0, BLOCK // 2)
    tl.store(out + row * (width // 2) + half, both.to(tl.uint8, bitcast=True), half < width // 2)


@triton.jit
def unpack_four_bits(x, scales, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    half = tl.arange(0, BLOCK // 2)
    both = tl.load(x + row * (width // 2) + half, half < width // 2, other=0)
    number = tl.interleave((both & 0xF).to(tl.int8), (both >> 4).to(tl.int8))
    number = tl.where(number >= 8, number - 16, number)
    at = tl.arange(0, BLOCK)
    tl.store(out + row * width + at, number.to(tl.float32) * tl.load(scales + row), at < width)


def packed_bits(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scales = x.abs().amax(1) / 7
    numbers = torch.round(x / scales[:, None]).to(torch.int16) & 15
    return scales, (numbers[:, 0::2] | numbers[:, 1::2] << 4).to(torch.uint8)


def pack_expected(a: Arguments) -> dict[str, torch.Tensor]:
    scales, out = packed_bits(a["x"])
    return {"scales": scales, "out": out}


def unpack_arguments(g: torch.Generator) -> Arguments:
    whole = normal(g, 6, 24)
    scales, bits = packed_bits(whole)
    rounded = torch.round(whole / scales[:, None]) * scales[:, None]
    return {
        "x": bits,
        "scales": scales,
        "out": torch.zeros(6, 24),
        "_rounded": rounded,
        "width": 24,
        "BLOCK": 32,
    }


@triton.jit
def sample_nucleus(logits, drawn, out, vocabulary, p, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    logit = tl.load(logits + row * vocabulary + at, at < vocabulary, other=-float("inf"))
    e = tl.exp(logit - tl.max(logit, 0))
    chance = e / tl.sum(e, 0)
    ordered = tl.sort(chance, descending=True)
    before = tl.cumsum(ordered, 0) - ordered
    least = tl.min(tl.where(before < p, ordered, 1.0), 0)
    kept = tl.where(chance >= least, chance, 0.0)
    below = tl.cumsum(kept / tl.sum(kept, 0), 0) < tl.load(drawn + row)
    tl.store(out + row, tl.sum(below.to(tl.int32), 0))


def nucleus_expected(a: Arguments) -> dict[str, torch.Tensor]:
    chance = torch.softmax(a["logits"], -1)
    ordered = chance.sort(-1, descending=True).values
    in_it = ordered.cumsum(-1) - ordered < 0.8
    least = torch.where(in_it, ordered, 1.0).amin(-1, keepdim=True)
    kept = torch.where(chance >= least, chance, 0.0)
    below = (kept / kept.sum(-1, keepdim=True)).cumsum(-1) < a["drawn"][:, None]
    return {"out": below.sum(-1).to(torch.int32)}


CASES = [
    *(packed([5, 0, 32, 13], [9, 3, 32, 16], w, c) for w in (0, 7) for c in (False, True)),
    packed([20], [20], 5, True),
    Case("paged_decode", paged_decode, paged_arguments, (4, 2), paged_expected, 1e-4, 1e-5, reorders=True),
    Case("selective_scan", selective_scan, scan_arguments, (3,), scan_expected, 1e-4, 1e-5, reorders=True),
    Case(
        "gated_linear_attention", gated_linear_attention, linear_arguments, (3,), linear_expected,
        1e-3, 1e-3, reorders=True,
    ),
    Case(
        "count_experts", count_experts,
        lambda g: {"chosen": integers(g, 0, 8, 37), "ends": torch.zeros(8, dtype=torch.int32), "numel": 37,
                   "EXPERTS": 8, "PAD": 4, "BLOCK": 16},
        (1,), count_expected,
    ),
    Case("sort_tokens", sort_tokens, sort_arguments, (5,), sort_expected),
    Case(
        "pack_four_bits", pack_four_bits,
        lambda g: {"x": normal(g, 6, 24), "scales": torch.zeros(6),
                   "out": torch.zeros(6, 12, dtype=torch.uint8), "width": 24, "BLOCK": 32},
        (6,), pack_expected, 1e-6,
    ),
    Case(
        "unpack_four_bits", unpack_four_bits, unpack_arguments, (6,), lambda a: {"out": a["_rounded"]}, 1e-6,
    ),
    Case(
        "sample_nucleus", sample_nucleus,
        lambda g: {"logits": normal(g, 6, 50), "drawn": torch.rand(6, generator=g),
                   "out": torch.zeros(6, dtype=torch.int32), "vocabulary": 50, "p": 0.8, "BLOCK": 64},
        (6,), nucleus_expected,
    ),
]  # fmt: skip
