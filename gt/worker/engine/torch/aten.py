"""aten ops by name, for programs that use the device of `gt.torch`.

An instruction has the name of an overload (`aten::native_layer_norm`), its tensors as inputs and its other
arguments as attributes, by their names in the schema. For arguments that are tensors, attributes describe
which inputs they are: True for an optional one that is present, the length of a list, a list of bools for a
list with missing entries; a number in place of a tensor is the attribute itself. Dtypes and memory formats
are strings ("torch.float32"), complex numbers ["complex", re, im]. An op that draws random numbers has a seed
in place of a generator, so that it gives the same on every worker.

An op that changes its arguments gets copies, which are its results: no value on a worker ever changes.
`aten_allowed` has the ops that clients may use.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from gt.ops.aten import DEVICE_OPS, PREFIX, RESULTS, SEED, TORCH_DTYPES
from gt.worker.engine.torch.aten_allowed import is_allowed
from gt.worker.engine.torch.numbers import in_float32, like


def is_aten(op: str) -> bool:
    """Whether an op is an aten op, and not a row of the op table."""
    return op in DEVICE_OPS or op.startswith(PREFIX)


@functools.cache
def function(op: str) -> Callable[..., Any]:
    """The function that computes an op from its inputs and attributes. Raises ValueError if it is not
    allowed."""
    return globals()[op] if op in DEVICE_OPS else _Call(op)


@functools.cache
def attributes(op: str) -> frozenset[str]:
    """The attributes that an op may have."""
    return DEVICE_OPS[op] if op in DEVICE_OPS else function(op).attributes  # type: ignore[attr-defined]


class _Call:
    """Calls one overload."""

    def __init__(self, op: str) -> None:
        packet, _, overload = op.removeprefix(PREFIX).partition(".")
        found = getattr(torch.ops.aten, packet, None)
        overload = overload or "default"
        if (
            not op.startswith(PREFIX)
            or found is None
            or overload not in found.overloads()
            or not is_allowed(packet, getattr(found, overload).name())
        ):
            raise ValueError(f"{op} is not an op that clients may use")
        self._function = getattr(found, overload)
        self._adapted = ADAPTED.get(op, self._function)
        arguments = self._function._schema.arguments
        self.attributes = frozenset((*[one.name for one in arguments], RESULTS))
        self._kinds = [
            (one.name, str(one.type), one.kwarg_only, one.has_default_value()) for one in arguments
        ]
        self._internal = packet.startswith(("_", "native_")) or "_backward" in packet
        self._mutated = [n for n, one in enumerate(arguments) if one.alias_info and one.alias_info.is_write]
        self._random = torch.Tag.nondeterministic_seeded in self._function.tags
        if self._random and any(one.name == "generator" for one in arguments):
            self.attributes |= {SEED}
        self._drops = any(one.name == "dropout_p" for one in arguments)
        self.run_time = COMPILED_FORMS[op][0] if op in COMPILED_FORMS else ()
        """The attributes that may be tensors of one number in a compiled graph."""

    def draws(self, attrs: dict[str, Any]) -> bool:
        """Whether it draws random numbers. Attention does so for dropout only."""
        return self._random and not (self._drops and not attrs.get("dropout_p"))

    def __call__(self, /, *inputs: Any, **attrs: Any) -> Any:
        return self.bound(attrs)(*inputs)

    def bound(self, attrs: dict[str, Any]) -> Callable[..., Any]:
        """The function of the inputs alone, for these attributes."""
        # For each argument its value, or a placeholder for the inputs that it takes.
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        gap = False
        for name, kind, keyword, has_default in self._kinds:
            value: Any
            if (kind == "Tensor" and name not in attrs) or (kind == "Optional[Tensor]" and attrs.get(name)):
                value = _INPUT
            elif kind in ("List[Tensor]", "Optional[List[Tensor]]") and name in attrs:
                value = _Inputs(range(1, int(attrs[name]) + 1))
            elif kind == "List[Optional[Tensor]]":
                value = _Inputs(attrs[name])
            elif name == "generator" and SEED in attrs:
                value = _Seed(attrs[SEED])
            elif name in attrs:
                value = _decoded(attrs[name])
            elif not has_default:
                value = None
            else:
                gap = True
                continue
            if keyword or gap:
                kwargs[name] = value
            else:
                args.append(value)
        call = self._call(args, kwargs)
        return (lambda *inputs: call(*map(_dense, inputs))) if self._internal else call

    def _call(self, args: list[Any], kwargs: dict[str, Any]) -> Callable[..., Any]:
        function = self._adapted
        names = [one.name for one in self._function._schema.arguments]
        mutated = {names[n] for n in self._mutated}
        one_result = [str(one.type) for one in self._function._schema.returns] == ["Tensor"]
        tensors_first = len(list(itertools.takewhile(lambda one: one is _INPUT, args)))
        fixed = args[tensors_first:]
        rest = (*fixed, *kwargs.values())
        if one_result and not mutated and not any(one is _INPUT or type(one) in _STANDING for one in rest):
            if not rest:  # the usual case is fast
                return lambda *tensors: _own(function(*tensors))
            return lambda *tensors: _own(function(*tensors, *fixed, **kwargs))

        def run(*tensors: Any) -> Any:
            waiting = iter(tensors)
            changed: list[torch.Tensor] = []

            def take(name: str, value: Any) -> Any:
                if value is _INPUT:
                    value = next(waiting)
                elif type(value) is _Inputs:
                    value = [next(waiting) if present else None for present in value.present]
                elif type(value) is _Seed:
                    value = torch.Generator(tensors[0].device if tensors else "cpu").manual_seed(value.seed)
                if name in mutated:
                    value = _copied(value)
                    changed.extend(value if isinstance(value, list) else [value])
                return value

            positional = [take(name, value) for name, value in zip(names, args, strict=False)]
            keywords = {name: take(name, value) for name, value in kwargs.items()}
            result = function(*positional, **keywords)
            if mutated:
                own = [_own(one) for one in _flat(result) if not any(one is other for other in changed)]
                made = (*own, *changed)
                return made[0] if len(made) == 1 else made
            return _own(result) if isinstance(result, torch.Tensor) else _flat(result)

        return run


_INPUT = object()
"""A placeholder for an argument that is an input."""


class _Inputs(NamedTuple):
    """A placeholder for an argument that is a list of inputs."""

    present: Sequence[Any]
    """For each entry, whether it is an input. A range, not a list: its length comes from an untrusted
    client."""


class _Seed(NamedTuple):
    """A placeholder for a generator with this seed, which is made for each call."""

    seed: int


_STANDING = (_Inputs, _Seed)


def _dense(value: torch.Tensor) -> torch.Tensor:
    """A value for an internal op of PyTorch, which does not check its inputs.

    With gaps or repetitions in an input, it might read beyond it.
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
    """A result with memory: PyTorch's zero tensors have none."""
    return result.clone() if result._is_zerotensor() else result


def _flat(result: Any) -> Any:
    """A flat tuple of several results; a tensor for a number."""
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
    flat = self.resolve_conj().resolve_neg().contiguous()
    return (flat if flat.stride(-1) == 1 else flat.clone().as_strided(flat.shape, (1,))).view(dtype)


ADAPTED = {"aten::histc": _histc, "aten::view.dtype": _view_dtype}
"""Ops that take arguments which PyTorch's function for the CPU refuses: dtypes of other devices; strides."""


# --- rows that only the device uses ---


def item(values: torch.Tensor | Sequence[torch.Tensor], index: int, results: str = "") -> torch.Tensor:
    """One of several results. The only result of an op is its item 0."""
    if isinstance(values, tuple):
        return values[index]
    if index:
        raise IndexError("item: the input is a single tensor")
    assert isinstance(values, torch.Tensor)
    return values


def as_strided(
    x: torch.Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int
) -> torch.Tensor:
    return _own_memory(x).as_strided(tuple(size), tuple(stride), storage_offset)


def as_strided_scatter(
    x: torch.Tensor, y: torch.Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int
) -> torch.Tensor:
    return torch.as_strided_scatter(_own_memory(x), y, tuple(size), tuple(stride), storage_offset)


def _own_memory(x: torch.Tensor) -> torch.Tensor:
    """The value in a storage of its own, so that strides and offsets cannot reach other data."""
    x = x.contiguous()
    return x if x.untyped_storage().nbytes() == x.nbytes else x.clone()


_NUMBER = {getattr(torch, name): number for number, name in enumerate(TORCH_DTYPES)}


def specs(values: Any) -> torch.Tensor:
    """For each result its rank, the number of its dtype, its size and its strides, as one list of
    integers."""
    numbers: list[int] = []
    for one in values if isinstance(values, tuple) else (values,):
        numbers += [one.dim(), _NUMBER[one.dtype], *one.shape, *one.stride()]
    return torch.tensor(numbers, dtype=torch.int64)


def number(value: Any, dtype: str, results: str = "") -> torch.Tensor:
    """A number that differs from call to call, as a tensor without dimensions."""
    given = value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=torch.float64)
    return given.to(_decoded(dtype), copy=True)


number.run_time = ("value",)  # type: ignore[attr-defined] - as of `_Call`


# --- forms for compiled graphs, in which some numbers are tensors ---


@in_float32
def _addcdiv(self: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Any:
    return self + like(value, self) * tensor1 / tensor2


@in_float32
def _addcmul(self: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Any:
    return self + like(value, self) * tensor1 * tensor2


@in_float32
def _add(self: Any, other: Any, alpha: Any = 1) -> Any:
    return self + other * like(alpha, self)


@in_float32
def _sub(self: Any, other: Any, alpha: Any = 1) -> Any:
    return self - other * like(alpha, self)


@in_float32
def _lerp(self: Any, end: Any, weight: Any) -> Any:
    return torch.lerp(self, end, like(weight, self))


COMPILED_FORMS: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    "aten::addcdiv": (("value",), _addcdiv),
    "aten::addcmul": (("value",), _addcmul),
    "aten::add.Tensor": (("alpha",), _add),
    "aten::sub.Tensor": (("alpha",), _sub),
    "aten::lerp.Scalar": (("weight",), _lerp),
}
"""Ops of optimizers: the attributes that change with every step, and the op with tensors for them."""
