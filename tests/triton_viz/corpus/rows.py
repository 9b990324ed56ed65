"""Kernels that own rows: softmax and layer norm, forwards and backwards."""

import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.case import Arguments, Case, normal

I32 = torch.int32


@triton.jit
def softmax_row(x, out, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + at, mask=at < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * columns + at, e / tl.sum(e, axis=0), mask=at < columns)


@triton.jit
def softmax_full_rows(x, out, COLUMNS: tl.constexpr):
    """No mask is needed where rows fill the block."""
    at = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(out + at, tl.softmax(tl.load(x + at)))


@triton.jit
def softmax_persistent(x, out, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    first, step = tl.program_id(0), tl.num_programs(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    for row in tl.range(first, rows, step, num_stages=STAGES):
        v = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
        shifted = v - tl.max(v, axis=0)
        numerator = tl.exp(shifted)
        tl.store(out + row * columns + at, numerator / tl.sum(numerator, axis=0), mask=inside)


@triton.jit
def softmax_online(x, out, columns, BLOCK: tl.constexpr):
    """Rows longer than a block: a running maximum and a running sum, then a second pass."""
    row = tl.program_id(0)
    highest = -float("inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
        now = tl.maximum(highest, tl.max(v, 0))
        total = total * tl.exp(highest - now) + tl.sum(tl.exp(v - now), 0)
        highest = now
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
        tl.store(out + row * columns + at, tl.exp(v - highest) / total, mask=at < columns)


@triton.jit
def norm_forward(x, weight, bias, out, means, rstds, columns, eps, BLOCK: tl.constexpr):
    """Rows in pieces of BLOCK: mean, then variance, then the affine step."""
    row = tl.program_id(0)
    x += row * columns
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + at, mask=at < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + at, mask=at < columns, other=0.0).to(tl.float32)
        centred = tl.where(at < columns, v - mean, 0.0)
        squares += centred * centred
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    tl.store(means + row, mean)
    tl.store(rstds + row, rstd)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < columns
        v = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        w, b = tl.load(weight + at, mask=mask), tl.load(bias + at, mask=mask)
        tl.store(out + row * columns + at, (v - mean) * rstd * w + b, mask=mask)


@triton.jit
def norm_backward_of(x, dy, weight, mean, rstd, columns, mask):
    """What of a row's gradient goes to its input, and what to weight and bias."""
    normal = tl.where(mask, (x - mean) * rstd, 0.0)
    through = tl.where(mask, weight * dy, 0.0)
    along = tl.sum(normal * through, axis=0) / columns
    flat = tl.sum(through, axis=0) / columns
    return (through - (normal * along + flat)) * rstd, dy * normal


@triton.jit
def norm_backward_atomic(x, dy, weight, means, rstds, dx, dweight, dbias, columns, BLOCK: tl.constexpr):
    """Gradients of the weights are added up by atomics."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    here = row * columns + at
    v, d = tl.load(x + here, mask=mask, other=0.0), tl.load(dy + here, mask=mask, other=0.0)
    w = tl.load(weight + at, mask=mask, other=0.0)
    mean, rstd = tl.load(means + row), tl.load(rstds + row)
    gradient, to_weight = norm_backward_of(v, d, w, mean, rstd, columns, mask)
    tl.store(dx + here, gradient, mask=mask)
    tl.atomic_add(dweight + at, to_weight, mask=mask)
    tl.atomic_add(dbias + at, d, mask=mask)


@triton.jit
def norm_backward_locked(
    x,
    dy,
    weight,
    means,
    rstds,
    dx,
    partial_w,
    partial_b,
    locks,
    columns,
    GROUPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Rows share a few partial sums. A lock guards each; the first to come does not add but writes."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    here = row * columns + at
    v, d = tl.load(x + here, mask=mask, other=0.0), tl.load(dy + here, mask=mask, other=0.0)
    w = tl.load(weight + at, mask=mask, other=0.0)
    mean, rstd = tl.load(means + row), tl.load(rstds + row)
    gradient, to_weight = norm_backward_of(v, d, w, mean, rstd, columns, mask)
    tl.store(dx + here, gradient, mask=mask)
    group = row % GROUPS
    lock, used = locks + group, locks + GROUPS + group
    to_bias = d
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(used) == 0:
        tl.atomic_xchg(used, 1)
    else:
        to_weight += tl.load(partial_w + group * columns + at, mask=mask)
        to_bias += tl.load(partial_b + group * columns + at, mask=mask)
    tl.store(partial_w + group * columns + at, to_weight, mask=mask)
    tl.store(partial_b + group * columns + at, to_bias, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def sum_partials(
    partial_w, partial_b, dweight, dbias, groups, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """The second stage: columns of the partial sums."""
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    w, b = tl.zeros([ROWS, COLUMNS], tl.float32), tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(0, groups, ROWS):
        i = start + tl.arange(0, ROWS)
        mask = (i[:, None] < groups) & (j[None, :] < columns)
        w += tl.load(partial_w + i[:, None] * columns + j[None, :], mask=mask, other=0.0)
        b += tl.load(partial_b + i[:, None] * columns + j[None, :], mask=mask, other=0.0)
    tl.store(dweight + j, tl.sum(w, axis=0), mask=j < columns)
    tl.store(dbias + j, tl.sum(b, axis=0), mask=j < columns)


@triton.jit
def rms_norm(x, weight, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    v = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(v * v, axis=0) / columns + eps)
    w = tl.load(weight + at, mask=mask)
    tl.store(out + row * columns + at, (v * scale).to(out.dtype.element_ty) * w, mask=mask)


@triton.jit
def cross_entropy(logits, targets, losses, columns, ignored, BLOCK: tl.constexpr):
    """Loss and, in place, gradient; rows without a target leave early."""
    row = tl.program_id(0)
    target = tl.load(targets + row)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    if target == ignored:
        tl.store(logits + row * columns + at, 0.0, mask=mask)
        return
    v = tl.load(logits + row * columns + at, mask=mask, other=-float("inf"))
    highest = tl.max(v, 0)
    e = tl.exp(v - highest)
    total = tl.sum(e, 0)
    chosen = tl.load(logits + row * columns + target)
    tl.store(losses + row, tl.log(total) + highest - chosen)
    gradient = e / total - tl.where(at == target, 1.0, 0.0)
    tl.store(logits + row * columns + at, gradient, mask=mask)


SOFT = {"rtol": 1e-5, "atol": 1e-6, "reorders": True}
ROWS, COLUMNS = 7, 27


def softmaxed(a: Arguments) -> dict[str, torch.Tensor]:
    return {"out": torch.softmax(a["x"], 1)}


def softmax_case(name: str, kernel: object, programs: int, width: int = COLUMNS, **given: object) -> Case:
    def arguments(generator: torch.Generator) -> Arguments:
        return {"x": normal(generator, ROWS, width) * 3, "out": torch.zeros(ROWS, width), **given}

    return Case(name, kernel, arguments, (programs,), softmaxed, **SOFT)


def padded_columns(generator: torch.Generator) -> Arguments:
    """Rows that are views of longer ones."""
    x = normal(generator, ROWS, 40)[:, 5:32]
    return {"x": x, "out": torch.zeros(ROWS, COLUMNS), "stride": 40, "columns": COLUMNS, "BLOCK": 32}


def norm_inputs(generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Arguments:
    x = normal(generator, ROWS, COLUMNS, dtype=dtype)
    return {
        "x": x,
        "weight": normal(generator, COLUMNS, dtype=dtype),
        "bias": normal(generator, COLUMNS, dtype=dtype),
    }


def normed(a: Arguments) -> dict[str, torch.Tensor]:
    x = a["x"].double()
    mean, variance = x.mean(1), x.var(1, correction=0)
    rstd = 1 / (variance + a["eps"]).sqrt()
    out = (x - mean[:, None]) * rstd[:, None] * a["weight"].double() + a["bias"].double()
    return {"out": out.to(a["out"].dtype), "means": mean.float(), "rstds": rstd.float()}


def norm_case(dtype: torch.dtype, tolerance: float) -> Case:
    def arguments(generator: torch.Generator) -> Arguments:
        empty = {
            "out": torch.zeros(ROWS, COLUMNS, dtype=dtype),
            "means": torch.zeros(ROWS),
            "rstds": torch.zeros(ROWS),
        }
        return {**norm_inputs(generator, dtype), **empty, "columns": COLUMNS, "eps": 1e-5, "BLOCK": 8}

    name = f"layer_norm_{str(dtype)[6:]}"
    return Case(name, norm_forward, arguments, (ROWS,), normed, rtol=tolerance, atol=tolerance, reorders=True)


def backward_inputs(generator: torch.Generator) -> Arguments:
    given = norm_inputs(generator)
    x, dy = given["x"], normal(generator, ROWS, COLUMNS)
    rstds = 1 / (x.var(1, correction=0) + 1e-5).sqrt()
    inputs = {"x": x, "dy": dy, "weight": given["weight"], "means": x.mean(1), "rstds": rstds}
    return {**inputs, "dx": torch.zeros(ROWS, COLUMNS), "columns": COLUMNS, "BLOCK": 32}


def gradients(a: Arguments) -> dict[str, torch.Tensor]:
    """What autograd says."""
    x, weight = a["x"].clone().requires_grad_(), a["weight"].clone().requires_grad_()
    bias = torch.zeros(COLUMNS, requires_grad=True)
    out = torch.nn.functional.layer_norm(x, (COLUMNS,), weight, bias, 1e-5)
    dx, dweight, dbias = torch.autograd.grad(out, (x, weight, bias), a["dy"])
    return {"dx": dx, "dweight": dweight, "dbias": dbias}


def grouped_gradients(a: Arguments) -> dict[str, torch.Tensor]:
    """The partial sums of rows 0, 3, 6, of 1, 4 and of 2, 5."""
    normal_x = (a["x"] - a["means"][:, None]) * a["rstds"][:, None]
    groups = [slice(g, None, 3) for g in range(3)]
    return {
        "dx": gradients(a)["dx"],
        "partial_w": torch.stack([(a["dy"] * normal_x)[g].sum(0) for g in groups]),
        "partial_b": torch.stack([a["dy"][g].sum(0) for g in groups]),
        "locks": torch.tensor([0, 0, 0, 1, 1, 1], dtype=I32),
    }


def entropies(a: Arguments) -> dict[str, torch.Tensor]:
    logits = a["logits"].clone().requires_grad_()
    losses = torch.nn.functional.cross_entropy(logits, a["targets"], reduction="none", ignore_index=-100)
    (gradient,) = torch.autograd.grad(losses.sum(), logits)
    return {"losses": losses.detach(), "logits": gradient}


def rms(a: Arguments) -> dict[str, torch.Tensor]:
    x = a["x"].float()
    scaled = x * torch.rsqrt((x * x).mean(1, True) + 1e-6)
    return {"out": scaled.to(a["x"].dtype) * a["weight"]}


CASES = [
    softmax_case("softmax", softmax_row, ROWS, stride=COLUMNS, columns=COLUMNS, BLOCK=32),
    softmax_case("softmax_without_padding", softmax_full_rows, ROWS, width=32, COLUMNS=32),
    Case("softmax_of_strided_rows", softmax_row, padded_columns, (ROWS,), softmaxed, **SOFT),
    *(
        softmax_case(
            f"softmax_persistent_{n}_programs",
            softmax_persistent,
            n,
            rows=ROWS,
            columns=COLUMNS,
            BLOCK=32,
            STAGES=2,
        )
        for n in (1, 3, 9)
    ),
    softmax_case("softmax_online", softmax_online, ROWS, columns=COLUMNS, BLOCK=8),
    norm_case(torch.float32, 1e-5),
    norm_case(torch.float16, 3e-3),
    norm_case(torch.bfloat16, 3e-2),
    Case(
        "layer_norm_backward_with_atomics",
        norm_backward_atomic,
        lambda g: backward_inputs(g) | {"dweight": torch.zeros(COLUMNS), "dbias": torch.zeros(COLUMNS)},
        (ROWS,),
        gradients,
        rtol=1e-4,
        atol=1e-5,
        reorders=True,
    ),
    Case(
        "layer_norm_backward_with_locks",
        norm_backward_locked,
        lambda g: (
            backward_inputs(g)
            | {
                "partial_w": torch.full((3, COLUMNS), 99.0),
                "partial_b": torch.full((3, COLUMNS), 99.0),
                "locks": torch.zeros(6, dtype=I32),
                "GROUPS": 3,
            }
        ),
        (ROWS,),
        grouped_gradients,
        rtol=1e-4,
        atol=1e-5,
        reorders=True,
    ),
    Case(
        "layer_norm_backward_second_stage",
        sum_partials,
        lambda g: {
            "partial_w": normal(g, 5, COLUMNS),
            "partial_b": normal(g, 5, COLUMNS),
            "dweight": torch.zeros(COLUMNS),
            "dbias": torch.zeros(COLUMNS),
            "groups": 5,
            "columns": COLUMNS,
            "ROWS": 2,
            "COLUMNS": 8,
        },
        (4,),
        lambda a: {"dweight": a["partial_w"].sum(0), "dbias": a["partial_b"].sum(0)},
        rtol=1e-5,
        atol=1e-6,
        reorders=True,
    ),
    *(
        Case(
            f"rms_norm_{str(dtype)[6:]}",
            rms_norm,
            lambda g, dtype=dtype: {
                "x": normal(g, ROWS, COLUMNS, dtype=dtype),
                "weight": normal(g, COLUMNS, dtype=dtype),
                "out": torch.zeros(ROWS, COLUMNS, dtype=dtype),
                "columns": COLUMNS,
                "eps": 1e-6,
                "BLOCK": 32,
            },
            (ROWS,),
            rms,
            rtol=tolerance,
            atol=tolerance,
            reorders=True,
        )
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2))
    ),
    Case(
        "cross_entropy_with_gradient_in_place",
        cross_entropy,
        lambda g: {
            "logits": normal(g, ROWS, COLUMNS),
            "targets": torch.tensor([3, -100, 0, 26, 5, -100, 9]),
            "losses": torch.zeros(ROWS),
            "columns": COLUMNS,
            "ignored": -100,
            "BLOCK": 32,
        },
        (ROWS,),
        entropies,
        rtol=1e-5,
        atol=1e-6,
        reorders=True,
    ),
]
