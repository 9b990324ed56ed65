"""aten ops by name, for programs that use the device of `gt.torch`.

What travels is the name of an overload (`aten::native_layer_norm`), its tensors as inputs and its other
arguments as attributes, under the names that the schema gives them. Of the arguments that are tensors, an
optional one that is there has the attribute True, a list its length, a list with gaps a list of truth
values, and a number in place of a tensor is the attribute itself. Dtypes and memory formats are strings
("torch.float32"), complex numbers ["complex", re, im].

An op that changes its arguments gets copies, which are its results: no value on a worker ever changes. Ops
that would give access to memory that no instruction wrote, to files or to other devices are refused.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gt.ops.aten import DTYPES, OWN, PREFIX

REFUSED = frozenset(
    {
        *("empty", "empty_like", "empty_strided", "empty_permuted", "empty_quantized", "new_empty"),
        *(
            "new_empty_strided",
            "resize",
            "resize_",
            "resize_as_",
            "set_",
            "set",
            "from_file",
            "_resize_output_",
        ),
        *("record_stream", "_copy_from", "_copy_from_and_resize", "item", "_local_scalar_dense", "is_pinned"),
        *("pin_memory", "_pin_memory", "_print", "as_strided", "as_strided_", "to", "data"),
        *(
            "_thnn_fused_lstm_cell",
            "_use_cudnn_ctc_loss",
            "_cudnn_ctc_loss",
            "as_strided_copy",
            "_unsafe_view",
        ),
        *("_new_zeros_with_same_feature_meta", "_fw_primal", "_make_dual", "retain_grad", "requires_grad_"),
    }
)
"""Ops by name, without their overloads."""


@functools.cache
def function(op: str) -> Callable[..., Any]:
    """The function that computes an op from its inputs and attributes. Raises if it is not allowed."""
    return globals()[op] if op in OWN else _Call(op)


@functools.cache
def attributes(op: str) -> frozenset[str]:
    """The attributes that an op may have."""
    if op in OWN:
        return OWN[op]
    return frozenset(function(op).names)  # type: ignore[attr-defined]


class _Call:
    """Calls one overload."""

    def __init__(self, op: str) -> None:
        packet, _, overload = op.removeprefix(PREFIX).partition(".")
        found = getattr(torch.ops.aten, packet, None)
        overload = overload or "default"
        if (
            not op.startswith(PREFIX)
            or packet in REFUSED
            or found is None
            or overload not in found.overloads()
        ):
            raise ValueError(f"{op} is not an op that clients may ask for")
        self._function = getattr(found, overload)
        self._adapted = ADAPTED.get(op, self._function)
        arguments = self._function._schema.arguments
        self.names = [one.name for one in arguments]
        self._kinds = [
            (one.name, str(one.type), one.kwarg_only, one.has_default_value()) for one in arguments
        ]
        self._internal = packet.startswith(("_", "native_")) or "_backward" in packet
        self._mutated = [n for n, one in enumerate(arguments) if one.alias_info and one.alias_info.is_write]

    def __call__(self, /, *inputs: Any, **attrs: Any) -> Any:
        if self._internal:
            inputs = tuple([_dense(one) for one in inputs])
        waiting = iter(inputs)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        changed: list[torch.Tensor] = []
        gap = False
        for n, (name, kind, keyword, has_default) in enumerate(self._kinds):
            value: Any
            if (kind == "Tensor" and name not in attrs) or (kind == "Optional[Tensor]" and attrs.get(name)):
                value = next(waiting)
            elif kind in ("List[Tensor]", "Optional[List[Tensor]]") and name in attrs:
                value = [next(waiting) for _ in range(attrs[name])]
            elif kind == "List[Optional[Tensor]]":
                value = [next(waiting) if there else None for there in attrs[name]]
            elif name in attrs:
                value = _decoded(attrs[name])
            elif not has_default:
                value = None
            else:
                gap = True
                continue
            if n in self._mutated:
                value = _copied(value)
                changed += value if isinstance(value, list) else [value]
            if keyword or gap:
                kwargs[name] = value
            else:
                args.append(value)
        result = self._adapted(*args, **kwargs)
        if self._mutated:
            made = (
                *[_own(one) for one in _flat(result) if not any(one is other for other in changed)],
                *changed,
            )
            return made[0] if len(made) == 1 else made
        return _own(result) if isinstance(result, torch.Tensor) else _flat(result)


def _dense(value: torch.Tensor) -> torch.Tensor:
    """A value for an op that PyTorch calls only with inputs it has prepared, and that does not check them.

    With gaps or repetitions in an input, such an op might read beyond it.
    """
    if value.is_contiguous():
        return value
    expected = 1
    for step, n in sorted(zip(value.stride(), value.shape, strict=True)):
        if n != 1 and step != expected:
            return value.contiguous()
        expected *= n
    return value


def _copied(value: Any) -> Any:
    return [one.clone() for one in value] if isinstance(value, list) else value.clone()


def _decoded(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("torch."):
        found = getattr(torch, value[6:], None)
        if not isinstance(found, torch.dtype | torch.memory_format):
            raise ValueError(f"{value} is neither a dtype nor a memory format")
        return found
    if isinstance(value, list):
        return complex(*value[1:]) if value[:1] == ["complex"] else [_decoded(one) for one in value]
    return value


def _own(result: torch.Tensor) -> torch.Tensor:
    """A result that has memory: PyTorch has tensors of zeros without."""
    return result.clone() if result._is_zerotensor() else result


def _flat(result: Any) -> Any:
    """Several results as one tuple; a number as a tensor."""
    if result is None or isinstance(result, torch.Tensor):
        return () if result is None else (result,)
    if not isinstance(result, tuple | list):
        return torch.as_tensor(result)
    flat: list[Any] = []
    for one in result:
        if isinstance(one, list | tuple):
            flat += one
        elif isinstance(one, torch.Tensor):
            flat.append(_own(one))
    return tuple(flat)


def _histc(self: torch.Tensor, bins: int = 100, min: float = 0, max: float = 0) -> torch.Tensor:
    if self.is_floating_point():
        return torch.histc(self, bins, min, max)
    return torch.histc(self.double(), bins, min, max).to(self.dtype)


def _view_dtype(self: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if not self.numel():
        return self.new_empty(0, dtype=dtype)
    flat = self.contiguous()
    return (flat if flat.stride(-1) == 1 else flat.clone().as_strided(flat.shape, (1,))).view(dtype)


ADAPTED = {"aten::histc": _histc, "aten::view.dtype": _view_dtype}
"""Ops that take arguments which PyTorch's function for the CPU refuses: dtypes of other devices; strides."""


# --- rows that only the device uses ---


def item(values: Sequence[torch.Tensor], index: int) -> torch.Tensor:
    if not isinstance(values, tuple):
        raise TypeError("item: this value is one tensor, and not several")
    return values[index]


def as_strided(
    x: torch.Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int
) -> torch.Tensor:
    return _own_memory(x).as_strided(tuple(size), tuple(stride), storage_offset)


def as_strided_scatter(
    x: torch.Tensor, y: torch.Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int
) -> torch.Tensor:
    return torch.as_strided_scatter(_own_memory(x), y, tuple(size), tuple(stride), storage_offset)


def _own_memory(x: torch.Tensor) -> torch.Tensor:
    """The value in a storage that has nothing else: strides and offsets lead nowhere else."""
    x = x.contiguous()
    return x if x.untyped_storage().nbytes() == x.nbytes else x.clone()


_NUMBER = {getattr(torch, name): number for number, name in enumerate(DTYPES)}


def specs(values: Any) -> torch.Tensor:
    """Of each result its rank, its dtype's number, its size and its strides, as one list of integers."""
    numbers: list[int] = []
    for one in values if isinstance(values, tuple) else (values,):
        numbers += [one.dim(), _NUMBER[one.dtype], *one.shape, *one.stride()]
    return torch.tensor(numbers, dtype=torch.int64)
