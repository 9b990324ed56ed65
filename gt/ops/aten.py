"""Ops that are sent under PyTorch's own names, and the few that only the device of `gt.torch` uses.

They have no rows: shapes and dtypes come from PyTorch on the client, which sends those of the results in an
attribute (`RESULTS`), and only the pytorch engine runs them. Their sharding rules are in
`gt.ops.sharding.aten`.
"""

import functools
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from gt.ops.dtypes import SIZES
from gt.ops.row import Spec
from gt.ops.run_time import SEEDED

PREFIX = "aten::"
"""The names of PyTorch's overloads begin with it: `aten::native_layer_norm`."""

RESULTS = "results"
"""The attribute with the dtype and shape of an op's result, `float32[4x8]`, or of each of several, from
which `item` takes one: `float32[4x8];int64[];`. A worker ignores it. Without it, they are not known."""

(SEED,) = SEEDED
"""The attribute with the seed of an op that draws random numbers."""

DEVICE_OPS: dict[str, frozenset[str]] = {
    "item": frozenset({"index", RESULTS}),
    "specs": frozenset(),
    "number": frozenset({"value", "dtype", RESULTS}),
    "as_strided": frozenset({"size", "stride", "storage_offset"}),
    "as_strided_scatter": frozenset({"size", "stride", "storage_offset"}),
}
"""Ops that only the device of gt.torch uses, and the attributes of each."""

TORCH_DTYPES = (
    *("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"),
    *("complex64", "complex128", "complex32", "uint16", "uint32", "uint64"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"),
)
"""PyTorch's dtypes by the numbers that `specs` gives for them."""

_RESULT = re.compile(r"(\w{1,20})\[(\d{1,12}(?:x\d{1,12}){0,63})?\]")
_MAX_BYTES = 1 << 40
_MAX_RESULTS_TEXT = 1 << 16


def result_text(shape: Iterable[int], dtype: str) -> str:
    """A shape and dtype in the form of the attribute `RESULTS`.

    >>> result_text((4, 8), "float32")
    'float32[4x8]'
    """
    return f"{dtype}[{'x'.join(map(str, shape))}]"


def is_several(op: str, attrs: Mapping[str, Any]) -> bool:
    """Whether the value of an op that has no row is several tensors, or not known."""
    if op.startswith("as_strided"):
        return False
    text = attrs.get(RESULTS)
    return not isinstance(text, str) or text.endswith(";")


@functools.lru_cache(maxsize=10_000)
def _read_results(text: str) -> tuple[Spec, ...]:
    found = []
    for one in text.removesuffix(";").split(";") if text != ";" else ():
        match = _RESULT.fullmatch(one)
        if match is None or match[1] not in SIZES:
            raise ValueError(f"{one[:80]!r} is not the dtype and shape of a result")
        shape = tuple(map(int, match[2].split("x"))) if match[2] else ()
        if math.prod(shape) * SIZES[match[1]] > _MAX_BYTES:
            raise ValueError(f"a result of shape {list(shape)} is too large")
        found.append(Spec(shape, match[1]))
    return tuple(found)


def results_of(op: str, inputs: tuple[Spec, ...], attrs: Mapping[str, Any]) -> tuple[Spec, ...]:
    """The specs of the results of an op that has no row; empty if they are unknown.

    Clients are not trusted. If the attribute is wrong, the worker that moves or reads the value fails: see
    `gt.worker.executors`. Raises ValueError if it is malformed.
    """
    if op == "as_strided":
        return (Spec(tuple(map(int, attrs["size"])), inputs[0].dtype),)
    if op == "as_strided_scatter":
        return inputs[:1]
    text = attrs.get(RESULTS)
    if text is None:
        return ()
    if not isinstance(text, str) or len(text) > _MAX_RESULTS_TEXT:
        raise ValueError(f"{op}: the attribute {RESULTS!r} must be a string such as float32[4x8]")
    return _read_results(text)
