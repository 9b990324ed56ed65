"""Saving and loading, as safetensors: numbers and names, without code.

    gt.save(model, "model.safetensors")
    model.load_state_dict(gt.load("model.safetensors"))

A file of tensors by name is an ordinary safetensors file, which other tools can read, as `gt.load` reads
theirs. For nested values with numbers, such as an optimizer's state, the structure is in the file's metadata.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gt.client.session import current
from gt.errors import StateError
from gt.nn.module import Module
from gt.tensors.base import upload
from gt.tensors.tensor import Tensor
from gt.transport.arrays import numpy_dtype

_SAFETENSORS_DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
}
_GT_DTYPES = {short: name for name, short in _SAFETENSORS_DTYPES.items()}
_SHAPE = "gt.shape"
"""The metadata key of the structure of nested values."""


def save(state: Any, path: str | Path) -> None:
    """Write a module's `state_dict()`, an optimizer's, or any tensors by name, to a file. Waits for data."""
    import safetensors

    file = os.fspath(path)
    given = state.state_dict() if isinstance(state, Module) else state
    tensors: dict[str, np.ndarray] = {}
    if isinstance(given, Mapping) and all(
        isinstance(k, str) and isinstance(v, Tensor | np.ndarray) for k, v in given.items()
    ):
        tensors = {name: _array(value) for name, value in given.items()}
        metadata = {"format": "pt"}  # PyTorch's tools require it
    else:
        shape = _pack(given, "", tensors)
        metadata = {"format": "pt", _SHAPE: json.dumps(shape)}
    # The specs point into the arrays; `tensors` keeps those alive.
    specs = {
        name: safetensors.TensorSpec(
            dtype=array.dtype.name, shape=list(array.shape), data_ptr=array.ctypes.data, data_len=array.nbytes
        )
        for name, array in tensors.items()
    }
    safetensors.serialize_file(specs, file, metadata)


def load(path: str | Path) -> Any:
    """Load a file that `save` wrote, or any safetensors file: tensors by name."""
    import safetensors

    try:
        with safetensors.safe_open(os.fspath(path), framework="numpy") as file:
            metadata = file.metadata() or {}
    except safetensors.SafetensorError as error:
        raise StateError(
            f"{path} is not a safetensors file ({error}). If it is a pickle, as torch.save writes, read it "
            "with torch.load, and pass the result to load_state_dict"
        ) from None
    client, tensors = current(), {}
    for name, entry in safetensors.deserialize(Path(path).read_bytes()):
        if entry["dtype"] not in _GT_DTYPES:
            raise StateError(f"{path}: tensor {name!r} has dtype {entry['dtype']}, which GT does not have")
        array = np.frombuffer(entry["data"], numpy_dtype(_GT_DTYPES[entry["dtype"]]))
        tensors[name] = upload(client, array.reshape(entry["shape"]))
    return _unpack(json.loads(metadata[_SHAPE]), tensors.__getitem__) if _SHAPE in metadata else tensors


def _array(value: Tensor | np.ndarray) -> np.ndarray:
    # Not `Tensor.numpy`, which converts bfloat16 to float32.
    array = value._value.client.fetch(value._value.id) if isinstance(value, Tensor) else value
    return np.ascontiguousarray(array).reshape(array.shape)


def _pack(value: Any, name: str, tensors: dict[str, np.ndarray]) -> Any:
    """A nested value as JSON; its tensors are added to `tensors`."""
    if isinstance(value, Tensor | np.ndarray):
        name = name or "tensor"
        tensors[name] = _array(value)
        return {"tensor": name}
    if isinstance(value, Mapping):
        # Pairs, because JSON converts keys to strings.
        return {
            "dict": [[key, _pack(item, f"{name}.{key}".lstrip("."), tensors)] for key, item in value.items()]
        }
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_pack(item, f"{name}.{index}", tensors) for index, item in enumerate(value)]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise StateError(
        f"{name!r} is a {type(value).__name__}: files can have tensors, numbers, strings, lists and dicts"
    )


def _unpack(packed: dict[str, Any], tensor: Callable[[str], Tensor]) -> Any:
    ((kind, value),) = packed.items()
    if kind == "tensor":
        return tensor(value)
    if kind == "dict":
        return {key: _unpack(item, tensor) for key, item in value}
    if kind in ("list", "tuple"):
        return (tuple if kind == "tuple" else list)(_unpack(item, tensor) for item in value)
    return value
