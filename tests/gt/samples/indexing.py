"""Samples of indexing ops."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.gt.samples.base import Sample, bools, floats, ints, signed
from tests.gt.samples.libraries import F, gradient, lib


def _key(text: str) -> Any:
    """A key as it is written between brackets."""
    return eval(f"np.index_exp[{text}]", {"np": np})


BASIC = [
    *("1", "-1", "1:3", "-2:", "::2", "1, 2", "1, :, ::3", "..., 0", "1, ..., 0", "None", ":, None, 1"),
    *("3:1", "..., None", ":, -1:, 1:3", "True", "..."),
]
ADVANCED = [
    *("[0, 2]", "[-1, 0, 0]", "[[0, 1], [2, 3]],", ":, [0, 2]", "[0, 1], [1, 2]", "[0, 1], :, [1, 2]"),
    *("0, :, [1, 2]", "[[0], [1]], [0, 2]", "None, [0, 1]", ":, 1:, [0, 0, 1]", "[0, 1], None, [1, 1]", "[]"),
    "1:3, [True, False, True]",
]


def _get(text: str) -> Sample:
    # PyTorch takes a list inside a tuple for an array.
    key = _key(text) if isinstance(_key(text), tuple) else (_key(text),)
    op = "index" if "[" in text else "getitem"
    return Sample(op, lambda x: x[key], (floats(4, 3, 5),), text.replace(" ", ""))


def _set(text: str, shape: tuple[int, ...]) -> Sample:
    key = _key(text)
    op = "index_put" if "[" in text else "setitem"

    def call(x: Any, y: Any) -> Any:
        x = x * 1  # a leaf may not change in place
        x[key] = y
        return x * 2

    return Sample(op, call, (floats(4, 3, 5), floats(*shape)), text.replace(" ", ""))


def _changed(key: Any, value: Any) -> Callable[[Any], Any]:
    def call(x: Any) -> Any:
        x = x * 1
        x[key] = value
        return x * 2

    return call


def _changed_where(x: Any, y: Any) -> Any:
    x = x * 1
    x[x > 1] = y
    return x * 2


POSITIONS = np.array([[0, 2, 1], [1, 1, 0]])


def _order(op: str) -> list[Sample]:
    some = np.array([[3, 1, 2, 1], [0, 5, 5, 4]], "float32")
    calls: dict[str, Callable[[Any], Any]] = {
        "last": lambda x: getattr(x, op)(),
        "first,descending": lambda x: getattr(x, op)(dim=0, descending=True),
    }
    if op == "sort":
        return [Sample("argsort", lambda x, call=c: call(x).values, (some,), n) for n, c in calls.items()]
    return [
        Sample("argsort", lambda x: x.argsort(stable=True), (some,), "ties"),
        Sample(
            "argsort", lambda x: x.argsort(dim=1, descending=True, stable=True), (some,), "ties,descending"
        ),
        Sample("argsort", lambda x: x.sort(stable=True).indices, (some.astype("uint8"),)),
        Sample("argsort", lambda x: x.sort(descending=True).values, (bools(5),)),
        Sample("argsort", lambda x: x.argsort(), (floats(),)),
    ]


SAMPLES: list[Sample] = [
    *(_get(text) for text in BASIC),
    *(_get(text) for text in ADVANCED),
    Sample("getitem", lambda x: x[1:], (ints(4),)),
    Sample("getitem_grad", gradient(lambda x: x[1:, None, ::2] * 2), (floats(4, 3),)),
    Sample("index", lambda x, i: x[i], (floats(4, 3), POSITIONS)),
    Sample("index", lambda x, i: x[i, i], (floats(4, 3), POSITIONS), "twice"),
    Sample("index", lambda x, i: x[i], (floats(4, 3), np.array(-1)), "number"),
    Sample("index", lambda x, i: x[:, i, [0, 1]], (floats(4, 3, 2), np.array(1)), "number"),
    Sample("index", lambda x, m: x[m], (floats(4, 3), bools(4, 3)), "mask"),
    Sample("index", lambda x, m: x[1:, m], (floats(4, 3), bools(3)), "mask"),
    Sample("index", lambda x: x[x > 1], (floats(4, 3),), "own mask"),
    Sample("index", lambda x, m: x.masked_select(m), (floats(4, 3), bools(3)), "masked_select"),
    Sample("index", lambda x, i: x.index_select(-1, i), (floats(4, 3), POSITIONS[0]), "index_select"),
    Sample("index_grad", gradient(lambda x, i: x[:, i] * 2), (floats(4, 3), POSITIONS)),
    _set("1", (3, 5)),
    _set("1:3, 0", (5,)),
    _set("1, 2", (5,)),
    _set(":, 1", (4, 5)),
    _set("1:3, 1:", (1, 2, 5)),
    _set("..., ::2", (1, 1, 3, 3)),
    _set(":", ()),
    _set("[0, 2]", (2, 3, 5)),
    _set("1, [0, 2], 1:", (4,)),
    _set("[0, 1], :, [1, 2]", (2, 3)),
    Sample("setitem", _changed(np.index_exp[1:, 0], 3), (floats(4, 3),), "number"),
    Sample("setitem", _changed(np.index_exp[1:, 0], 2.7), (ints(4, 3),), "number"),
    Sample("index_put", _changed([0, 2], 3), (floats(4, 3),), "number"),
    Sample("index_put", lambda x: _changed_where(x, 0), (floats(4, 3),), "mask"),
    Sample("index_put", _changed_where, (floats(4, 3), floats()), "mask"),
    Sample(
        "index_put",
        lambda x, i, y: x.index_add(0, i, y, alpha=2),
        (floats(4, 3), np.array([0, 2, 0]), signed(3, 3)),
        "index_add",
    ),
    Sample("gather", lambda x, i: x.gather(0, i), (floats(3, 4), POSITIONS)),
    Sample("gather", lambda x, i: lib(x).gather(x, -1, i), (floats(3, 4), POSITIONS)),
    Sample("gather", lambda x, i: x.take_along_dim(i, 1), (floats(1, 4), POSITIONS), "take_along_dim"),
    Sample("gather", lambda x, i: x.take_along_dim(i), (floats(1, 4), POSITIONS), "take_along_dim flat"),
    Sample("gather_grad", gradient(lambda x, i: x.gather(1, i)), (floats(3, 4), POSITIONS)),
    Sample(
        "scatter", lambda x, i, y: x.scatter(0, i, y), (floats(3, 4), np.array([[0, 1, 2]]), signed(1, 3))
    ),
    Sample("scatter", lambda x, i: x.scatter(1, i, 2.5), (floats(2, 4), POSITIONS), "number"),
    Sample("scatter", lambda x, i: (x * 1).scatter_(1, i, 1), (floats(2, 4), POSITIONS), "in place"),
    Sample("scatter_add", lambda x, i, y: x.scatter_add(1, i, y), (floats(2, 4), POSITIONS, signed(2, 3))),
    Sample("embedding", lambda w, i: F(w).embedding(i, w), (floats(4, 3), POSITIONS)),
    Sample("embedding_grad", gradient(lambda w, i: F(w).embedding(i, w)), (floats(4, 3), POSITIONS)),
    Sample(
        "embedding_grad", gradient(lambda w, i: F(w).embedding(i, w, 1)), (floats(4, 3), POSITIONS), "pad"
    ),
    *_order("argsort"),
    *_order("sort"),
    Sample("topk", lambda x: x.topk(2).values, (signed(3, 5),)),
    Sample("topk", lambda x: x.topk(2, dim=0, largest=False).indices, (signed(3, 5),), "smallest"),
    Sample("one_hot", lambda x: F(x).one_hot(x, 4), (POSITIONS,)),
    Sample("one_hot", lambda x: F(x).one_hot(x), (POSITIONS,), "open"),
    Sample("getitem", lambda x: x.nonzero(), (np.array([[0, 1], [2, 0]]),), "nonzero"),
    Sample("getitem", lambda x: x.nonzero(as_tuple=True)[1], (np.array([[0, 1], [2, 0]]),), "nonzero tuple"),
    Sample("getitem", lambda x: lib(x).argwhere(x), (bools(3, 3),), "argwhere"),
    Sample("getitem", lambda x: lib(x).unique(x), (np.array([3, 1, 3, 2]),), "unique"),
    Sample(
        "getitem",
        lambda x: lib(x).unique(x, return_inverse=True, return_counts=True)[1],
        (np.array([3, 1, 3, 2]),),
        "unique inverse",
    ),
]
