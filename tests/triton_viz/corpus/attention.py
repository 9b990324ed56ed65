"""Attention that never holds all scores, forwards and backwards, causal and not."""

import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.case import Arguments, Case, normal


@triton.jit
def scores_of(q, k, rows, columns, length, scale, CAUSAL: tl.constexpr):
    """Scores of a tile, minus infinity where a key may not be seen."""
    s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    seen = columns[None, :] < length
    if CAUSAL:
        seen = seen & (rows[:, None] >= columns[None, :])
    return tl.where(seen, s, -float("inf"))


@triton.jit
def tile(pointer, rows, length, D: tl.constexpr):
    at = tl.arange(0, D)
    return tl.load(pointer + rows[:, None] * D + at[None, :], mask=rows[:, None] < length, other=0.0)


@triton.jit
def attend(
    q,
    k,
    v,
    out,
    lse,
    length,
    scale,
    CAUSAL: tl.constexpr,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """Each program owns BM queries of one head, and walks over the keys it may see."""
    head = tl.program_id(1)
    base = head * length * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    mine = tile(q + base, rows, length, D)
    highest = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    last = length
    if CAUSAL:
        last = tl.minimum((tl.program_id(0) + 1) * BM, length)
    for start in range(0, last, BN):
        columns = start + tl.arange(0, BN)
        s = scores_of(mine, tile(k + base, columns, length, D), rows, columns, length, scale, CAUSAL)
        now = tl.maximum(highest, tl.max(s, 1))
        p = tl.exp(s - now[:, None])
        fade = tl.exp(highest - now)
        total = total * fade + tl.sum(p, 1)
        values = tile(v + base, columns, length, D)
        acc = tl.dot(p.to(values.dtype), values, acc * fade[:, None], input_precision="ieee")
        highest = now
    at = tl.arange(0, D)
    result = acc / total[:, None]
    tl.store(
        out + base + rows[:, None] * D + at[None, :],
        result.to(out.dtype.element_ty),
        mask=rows[:, None] < length,
    )
    tl.store(lse + head * length + rows, highest + tl.log(total), mask=rows < length)


@triton.jit
def dot_rows(out, dout, delta, length, D: tl.constexpr, BM: tl.constexpr):
    """What each query's gradient and result have in common."""
    base = tl.program_id(1) * length
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    o, d = tile(out + base * D, rows, length, D), tile(dout + base * D, rows, length, D)
    tl.store(delta + base + rows, tl.sum(o * d, axis=1), mask=rows < length)


@triton.jit
def attend_backward(
    q, k, v, dout, lse, delta, dq, dk, dv, length, scale,
    CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Each program owns BN keys; gradients of queries are added up by atomics."""
    head = tl.program_id(1)
    base = head * length
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    keys, values = tile(k + base * D, columns, length, D), tile(v + base * D, columns, length, D)
    to_keys, to_values = tl.zeros([BN, D], tl.float32), tl.zeros([BN, D], tl.float32)
    at = tl.arange(0, D)
    first = 0
    if CAUSAL:
        first = tl.program_id(0) * BN // BM * BM
    for start in range(first, length, BM):
        rows = start + tl.arange(0, BM)
        queries, grad = tile(q + base * D, rows, length, D), tile(dout + base * D, rows, length, D)
        logs = tl.load(lse + base + rows, mask=rows < length, other=float("inf"))
        common = tl.load(delta + base + rows, mask=rows < length, other=0.0)
        p = tl.exp(scores_of(queries, keys, rows, columns, length, scale, CAUSAL) - logs[:, None])
        to_values += tl.dot(tl.trans(p), grad, input_precision="ieee")
        dp = tl.dot(grad, tl.trans(values), input_precision="ieee")
        ds = p * (dp - common[:, None]) * scale
        to_keys += tl.dot(tl.trans(ds), queries, input_precision="ieee")
        step = tl.dot(ds, keys, input_precision="ieee")
        tl.atomic_add(dq + base * D + rows[:, None] * D + at[None, :], step, mask=rows[:, None] < length)
    inside = columns[:, None] < length
    tl.store(dk + base * D + columns[:, None] * D + at[None, :], to_keys, mask=inside)
    tl.store(dv + base * D + columns[:, None] * D + at[None, :], to_values, mask=inside)


@triton.jit
def decode(q, k, v, lengths, out, capacity, scale, D: tl.constexpr, BN: tl.constexpr):
    """One query per sequence against as many keys as that sequence has."""
    sequence = tl.program_id(0)
    at = tl.arange(0, D)
    mine = tl.load(q + sequence * D + at)
    length = tl.load(lengths + sequence)
    highest = -float("inf")
    total = 0.0
    acc = tl.zeros([D], tl.float32)
    for start in range(0, length, BN):
        columns = start + tl.arange(0, BN)
        keys = tile(k + sequence * capacity * D, columns, length, D)
        s = tl.where(columns < length, tl.sum(keys * mine[None, :], 1) * scale, -float("inf"))
        now = tl.maximum(highest, tl.max(s, 0))
        p = tl.exp(s - now)
        fade = tl.exp(highest - now)
        acc = acc * fade + tl.sum(p[:, None] * tile(v + sequence * capacity * D, columns, length, D), 0)
        total = total * fade + tl.sum(p, 0)
        highest = now
    tl.store(out + sequence * D + at, acc / total)


HEADS, LENGTH, D, SCALE = 2, 40, 16, 0.25


def scores(a: Arguments) -> torch.Tensor:
    s = a["q"].double() @ a["k"].double().transpose(1, 2) * SCALE
    if a["CAUSAL"]:
        s = s.masked_fill(torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1), -float("inf"))
    return s


def attended(a: Arguments) -> dict[str, torch.Tensor]:
    s = scores(a)
    out = torch.softmax(s, 2) @ a["v"].double()
    return {"out": out.to(a["out"].dtype), "lse": torch.logsumexp(s, 2).float()}


def forward_case(causal: bool, dtype: torch.dtype, tolerance: float) -> Case:
    def arguments(generator: torch.Generator) -> Arguments:
        given = {name: normal(generator, HEADS, LENGTH, D, dtype=dtype) for name in "qkv"}
        empty = {"out": torch.zeros(HEADS, LENGTH, D, dtype=dtype), "lse": torch.zeros(HEADS, LENGTH)}
        sizes = {"length": LENGTH, "scale": SCALE, "CAUSAL": causal, "D": D, "BM": 16, "BN": 16}
        return {**given, **empty, **sizes}

    name = f"attention_{'causal' if causal else 'full'}_{str(dtype)[6:]}"
    return Case(name, attend, arguments, (3, HEADS), attended, rtol=tolerance, atol=tolerance, reorders=True)


def backward_arguments(generator: torch.Generator, causal: bool) -> Arguments:
    given = {name: normal(generator, HEADS, LENGTH, D) for name in ("q", "k", "v", "dout")}
    s = scores({**given, "CAUSAL": causal})
    out = torch.softmax(s, 2) @ given["v"].double()
    delta = (out * given["dout"].double()).sum(2)
    empty = {name: torch.zeros(HEADS, LENGTH, D) for name in ("dq", "dk", "dv")}
    sizes = {"length": LENGTH, "scale": SCALE, "CAUSAL": causal, "D": D, "BM": 16, "BN": 16}
    return {**given, "lse": torch.logsumexp(s, 2).float(), "delta": delta.float(), **empty, **sizes}


def gradients(a: Arguments) -> dict[str, torch.Tensor]:
    q, k, v = (a[name].double().requires_grad_() for name in "qkv")
    out = torch.softmax(scores({"q": q, "k": k, "CAUSAL": a["CAUSAL"]}), 2) @ v
    found = torch.autograd.grad(out, (q, k, v), a["dout"].double())
    return {name: gradient.float() for name, gradient in zip(("dq", "dk", "dv"), found, strict=True)}


def decoded(a: Arguments) -> dict[str, torch.Tensor]:
    rows = []
    for n, length in enumerate(a["lengths"].tolist()):
        s = a["k"][n, :length] @ a["q"][n] * SCALE
        rows.append(torch.softmax(s, 0) @ a["v"][n, :length])
    return {"out": torch.stack(rows)}


CASES = [
    *(
        forward_case(causal, dtype, tolerance)
        for causal in (True, False)
        for dtype, tolerance in ((torch.float32, 1e-4), (torch.float16, 5e-3), (torch.bfloat16, 5e-2))
    ),
    *(
        Case(
            f"attention_backward_{'causal' if causal else 'full'}",
            attend_backward,
            lambda g, causal=causal: backward_arguments(g, causal),
            (3, HEADS),
            gradients,
            rtol=1e-3,
            atol=1e-4,
            reorders=True,
        )
        for causal in (True, False)
    ),
    Case(
        "attention_backward_first_stage",
        dot_rows,
        lambda g: {
            "out": normal(g, HEADS, LENGTH, D),
            "dout": normal(g, HEADS, LENGTH, D),
            "delta": torch.zeros(HEADS, LENGTH),
            "length": LENGTH,
            "D": D,
            "BM": 16,
        },
        (3, HEADS),
        lambda a: {"delta": (a["out"] * a["dout"]).sum(2)},
        rtol=1e-4,
        atol=1e-5,
        reorders=True,
    ),
    Case(
        "attention_of_ragged_sequences",
        decode,
        lambda g: {
            "q": normal(g, 5, D),
            "k": normal(g, 5, 50, D),
            "v": normal(g, 5, 50, D),
            "lengths": torch.tensor([1, 50, 16, 33, 7], dtype=torch.int32),
            "out": torch.zeros(5, D),
            "capacity": 50,
            "scale": SCALE,
            "D": D,
            "BN": 16,
        },
        (5,),
        decoded,
        rtol=1e-4,
        atol=1e-5,
        reorders=True,
    ),
]
