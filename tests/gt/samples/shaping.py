"""Samples of shape ops."""

from collections.abc import Callable
from typing import Any

from tests.gt.samples.base import Sample, bools, floats, ints, signed
from tests.gt.samples.libraries import F, lib


def _each(op: str, x: Any, *calls: Callable[[Any], Any]) -> list[Sample]:
    return [Sample(op, call, (x,), f"{x.dtype}-{number}") for number, call in enumerate(calls)]


SAMPLES: list[Sample] = [
    Sample("transpose", lambda x: x.T, (floats(3, 4),)),
    Sample("transpose", lambda x: x.transpose(0, -1), (floats(2, 3, 4),)),
    Sample("transpose", lambda x: x.transpose(0, 0), (floats(),), "scalar"),
    Sample("transpose", lambda x: x.t(), (floats(3),)),
    Sample("transpose", lambda x: x.mT, (floats(2, 3, 4),), "mT"),
    Sample("transpose", lambda x: x.swapaxes(1, 2), (floats(2, 3, 4),), "swapaxes"),
    *_each(
        "permute",
        floats(2, 3, 4),
        lambda x: x.permute(2, 0, 1),
        lambda x: x.permute((0, -1, 1)),
        lambda x: x.movedim(0, -1),
        lambda x: x.movedim((0, 1), (2, 0)),
        lambda x: lib(x).moveaxis(x, -1, 0),
    ),
    Sample("reshape", lambda x: x.reshape(2, -1), (floats(3, 4),)),
    Sample("reshape", lambda x: x.reshape((12,)), (floats(3, 4),), "tuple"),
    Sample("reshape", lambda x: x.view(1), (floats(),), "view"),
    *_each(
        "reshape",
        floats(2, 1, 3, 1),
        lambda x: x.flatten(),
        lambda x: x.flatten(1),
        lambda x: x.flatten(-3, -2),
        lambda x: x.unflatten(2, (3, -1)),
        lambda x: x.squeeze(),
        lambda x: x.squeeze(1),
        lambda x: x.squeeze((1, 2, -1)),
        lambda x: x.unsqueeze(0),
        lambda x: x.unsqueeze(-1),
        lambda x: x.view_as(x.flatten()),
        lambda x: x.contiguous().ravel(),
    ),
    Sample("reshape", lambda x: x.flatten(), (floats(),), "flat scalar"),
    Sample("expand", lambda x: x.expand(3, 4), (floats(3, 1),)),
    Sample("expand", lambda x: x.expand((2, -1, 4)), (floats(3, 1),), "tuple"),
    Sample("expand", lambda x, y: x.expand_as(y), (floats(3, 1), floats(2, 3, 4))),
    Sample("expand", lambda x: lib(x).broadcast_to(x, (2, 3)), (floats(3),)),
    Sample("expand", lambda x, y: lib(x).meshgrid(x, y, indexing="ij")[1], (floats(2), floats(3)), "ij"),
    Sample("expand", lambda x, y: lib(x).meshgrid(x, y, indexing="xy")[0], (floats(2), floats(3)), "xy"),
    *_each(
        "repeat",
        floats(2, 3),
        lambda x: x.repeat(2, 3),
        lambda x: x.repeat((2, 1, 2)),
        lambda x: x.tile(2),
        lambda x: x.repeat_interleave(2),
        lambda x: x.repeat_interleave(2, 1),
    ),
    Sample("repeat", lambda x, n: x.repeat_interleave(n, 0), (floats(2, 3), ints(2)), "by tensor"),
    *_each("flip", floats(2, 3), lambda x: x.flip(0), lambda x: lib(x).flip(x, (0, -1))),
    *_each(
        "roll", floats(2, 3), lambda x: x.roll(1), lambda x: x.roll(-1, 1), lambda x: x.roll((1, 5), (0, 1))
    ),
    *_each(
        "pad",
        floats(2, 3),
        lambda x: F(x).pad(x, (1, 2)),
        lambda x: F(x).pad(x, (0, 1, 2, 0), value=1.5),
        lambda x: F(x).pad(x, (-1, 1, 0, -1)),
    ),
    *_each(
        "index",
        floats(1, 3, 4),
        lambda x: F(x).pad(x, (2, 1), mode="reflect"),
        lambda x: F(x).pad(x, (2, 1), mode="replicate"),
        lambda x: F(x).pad(x, (2, 1), mode="circular"),
    ),
    Sample("pad", lambda x: F(x).pad(x, (1, 1)), (bools(3),)),
    Sample("cat", lambda x, y: lib(x).cat([x, y]), (floats(2, 3), floats(1, 3))),
    Sample("cat", lambda x, y: lib(x).cat((x, y, x), dim=-1), (floats(2, 3), ints(2, 1)), "mixed"),
    Sample("cat", lambda x, y: lib(x).concat([x, y]), (ints(0), floats(2, 3)), "empty"),
    Sample("cat", lambda x, y: lib(x).hstack([x, y]), (floats(2, 3), floats(2, 1)), "hstack"),
    Sample("cat", lambda x, y: lib(x).vstack([x, y]), (floats(3), floats(2, 3)), "vstack"),
    Sample("stack", lambda x, y: lib(x).stack([x, y]), (floats(2, 3), signed(2, 3))),
    Sample("stack", lambda x, y: lib(x).stack([x, y], dim=-1), (floats(2, 3), ints(2, 3)), "mixed"),
    *_each("tril", floats(3, 4), lambda x: x.tril(), lambda x: x.tril(-1)),
    *_each("triu", floats(2, 3, 4), lambda x: x.triu(), lambda x: x.triu(1)),
    *_each(
        "index",
        floats(3, 4),
        lambda x: x.diagonal(),
        lambda x: x.diagonal(1),
        lambda x: x.diag(-1),
        lambda x: x.trace(),
    ),
    Sample("index", lambda x: x.diagonal(-1, 2, 0), (floats(3, 2, 4),), "diagonal"),
    Sample("index_put", lambda x: lib(x).diag(x, -1), (floats(3),), "diag"),
    *_each(
        "getitem",
        floats(5, 3),
        lambda x: x.narrow(0, 1, 3),
        lambda x: x.narrow(-1, -2, 1),
        lambda x: x.select(1, -1),
        lambda x: lib(x).cat(x.split(2)[::-1]),
        lambda x: lib(x).cat(x.split([1, 0, 4])[::-1]),
        lambda x: lib(x).cat(x.chunk(3)[::-1]),
        lambda x: lib(x).cat(x.chunk(2, dim=1)[::-1], 1),
        lambda x: lib(x).stack(x.unbind(1)[::-1]),
        lambda x: lib(x).stack([row * 2 for row in x]),
        lambda x: x.clone() * 2,
    ),
]
