"""The symbols and types that the libdevice modules of the installed Triton declare."""

import ast
import inspect
import math
from typing import Any, NamedTuple

import numpy as np
from triton.language.extra.cuda import libdevice as cuda
from triton.language.extra.hip import libdevice as hip

DTYPES = {"fp32": "f4", "fp64": "f8", "int32": "i4", "int64": "i8", "uint32": "u4", "uint64": "u8"}


class Signature(NamedTuple):
    symbol: str
    arguments: tuple[np.dtype, ...]
    result: np.dtype


def declared(module: Any) -> list[Signature]:
    """The symbols of a libdevice module of the installed Triton, by argument types."""

    def dtype(node: ast.expr) -> np.dtype:
        assert isinstance(node, ast.Call)
        return np.dtype(DTYPES[ast.literal_eval(node.args[0])])

    found = []
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                assert isinstance(key, ast.Tuple)
                assert isinstance(value, ast.Tuple)
                symbol = ast.literal_eval(value.elts[0])
                found.append(Signature(symbol, tuple(map(dtype, key.elts)), dtype(value.elts[1])))
    return found


SIGNATURES = declared(cuda) + declared(hip)

EDGES = [
    math.nan,
    math.inf,
    -math.inf,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.5,
    -3.5,
    1e-40,
    1e30,
    -1e30,
    25.0,
    171.0,
]
