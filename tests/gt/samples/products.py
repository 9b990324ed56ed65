"""Samples of matrix products, and of layers that are made of them."""

import numpy as np

from tests.gt.samples.base import Sample, bools, floats, ints, signed
from tests.gt.samples.libraries import F, gradient, lib

PAIRS = [
    *(((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((0, 4), (4, 2)), ((2, 0), (0, 3))),
    *(((5, 2, 3), (3,)), ((3,), (5, 3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4))),
    *(((5, 1, 2, 3), (6, 3, 4)), ((1, 2, 3), (5, 3, 4))),
]

EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("i,j->ij", (2,), (3,)),
    ("ij->ji", (2, 3)),
    ("ij->", (2, 3)),
    ("ij->j", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)),
    ("b...i,ij->b...j", (2, 3, 4), (4, 5)),
    ("ij,kj,lj->ikl", (2, 3), (4, 3), (5, 3)),
    ("ij,jk->ik", (2, 1), (3, 4)),
    ("iji,j->", (2, 3, 2), (3,)),
]

QKV = (signed(2, 3, 4), floats(2, 5, 4), signed(2, 5, 6))

SAMPLES: list[Sample] = [
    *(Sample("matmul", lambda a, b: a @ b, (signed(*a), floats(*b))) for a, b in PAIRS),
    Sample("matmul", lambda a, b: a @ b, (ints(2, 2), ints(2, 2))),
    Sample("matmul", lambda a, b: a @ b, (floats(2, 2, dtype="float16"), floats(2, 2, dtype="float16"))),
    Sample("matmul", lambda a, b: lib(a).mm(a, b), (floats(2, 3), floats(3, 4)), "mm"),
    Sample("matmul", lambda a, b: a.bmm(b), (floats(2, 2, 3), floats(2, 3, 4)), "bmm"),
    Sample("matmul", lambda a, b: a.mv(b), (floats(2, 3), floats(3)), "mv"),
    Sample("matmul", lambda a, b: a.dot(b), (floats(3), floats(3)), "dot"),
    Sample("matmul", lambda a, b: lib(a).outer(a, b), (floats(3), floats(2)), "outer"),
    Sample("matmul", lambda c, a, b: c.addmm(a, b), (floats(4), floats(2, 3), floats(3, 4)), "addmm"),
    Sample(
        "matmul",
        lambda c, a, b: lib(c).addmm(c, a, b, beta=0.5, alpha=2),
        (floats(2, 4), floats(2, 3), floats(3, 4)),
        "addmm scaled",
    ),
    Sample("matmul", lambda c, a, b: c.baddbmm(a, b), (floats(2, 1, 4), floats(2, 2, 3), floats(2, 3, 4))),
    Sample("linear", lambda x, w: F(x).linear(x, w), (signed(2, 3), floats(4, 3))),
    Sample("linear", lambda x, w, b: F(x).linear(x, w, b), (signed(2, 3), floats(4, 3), floats(4))),
    Sample("linear", lambda x, w, b: F(x).linear(x, w, b), (signed(3), floats(4, 3), floats(4))),
    Sample("linear", lambda x, w, b: F(x).linear(x, w, b), (signed(5, 2, 3), floats(4, 3), floats(4))),
    Sample("linear", lambda x, w: F(x).linear(x, w), (signed(2, 3), floats(3))),
    Sample(
        "linear_weight_grad", gradient(lambda w, x: F(x).linear(x, w)), (floats(4, 3), signed(5, 2, 3)), "3d"
    ),
    Sample("linear_weight_grad", gradient(lambda b, a: a @ b), (floats(3, 4), signed(2, 3)), "2d"),
    *(
        Sample("einsum", lambda *x, e=e: lib(x[0]).einsum(e, *x), tuple(signed(*s) for s in shapes), e)
        for e, *shapes in EQUATIONS
    ),
    Sample("einsum", lambda a, b: lib(a).tensordot(a, b, dims=2), (floats(2, 3, 4), floats(3, 4, 5)), "dot"),
    Sample(
        "einsum",
        lambda a, b: lib(a).tensordot(a, b, dims=([0, 2], [2, 1])),
        (floats(2, 3, 4), floats(5, 4, 2)),
        "tensordot",
    ),
]


def _attention(note: str, **settings: object) -> Sample:
    def call(q, k, v):
        return F(q).scaled_dot_product_attention(q, k, v, **settings)

    return Sample("matmul", call, QKV, f"attention {note}")


SAMPLES += [
    _attention("plain"),
    _attention("causal", is_causal=True),
    _attention("scaled", scale=0.3),
    Sample(
        "matmul",
        lambda q, k, v, m: F(q).scaled_dot_product_attention(q, k, v, attn_mask=m),
        (*QKV, bools(3, 5) | np.eye(3, 5, dtype=bool)),
        "attention masked",
    ),
    Sample(
        "matmul",
        lambda q, k, v, m: F(q).scaled_dot_product_attention(q, k, v, attn_mask=m),
        (*QKV, signed(2, 3, 5)),
        "attention biased",
    ),
]
