"""Ops that travel under PyTorch's own names, and the few that only its device uses: see `gt.torch`.

They have no rows: shapes come from PyTorch on the client, and only the pytorch engine runs them.
"""

PREFIX = "aten::"
"""The names of PyTorch's overloads begin with it: `aten::native_layer_norm`."""

OWN: dict[str, frozenset[str]] = {
    "item": frozenset({"index"}),
    "specs": frozenset(),
    "as_strided": frozenset({"size", "stride", "storage_offset"}),
    "as_strided_scatter": frozenset({"size", "stride", "storage_offset"}),
}
"""Ops that only the device uses, and the attributes each may have."""

DTYPES = (
    *("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"),
    *("complex64", "complex128", "complex32", "uint16", "uint32", "uint64"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"),
)
"""PyTorch's dtypes by the numbers that `specs` gives for them."""
