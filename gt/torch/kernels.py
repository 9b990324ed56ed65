"""The kernels of the device: an aten op becomes an instruction of the stream.

PyTorch's dispatcher calls a kernel below autograd, for every aten op that is not composed of others. What
an op's instruction looks like depends on its arguments' layouts and on its other arguments, but for floats:
so it is worked out once (`Plan`) and remembered. Results' layouts come from the meta device.

An op that changes its arguments is issued as the op that computes the same and changes nothing; then the
buffers of these arguments get the results.
"""

from collections.abc import Callable
from typing import Any

import torch

from gt.errors import WorkerError
from gt.stream.instructions import Op
from gt.torch import lowering
from gt.torch.buffers import (
    DEVICE,
    Buffer,
    Handle,
    Item,
    Layout,
    check_distinct,
    create,
    emit,
    name_of,
    read,
    write,
)
from gt.torch.results import Results, ask, results_on_meta
from gt.torch.schemas import IGNORED, Schema, schema_of
from gt.torch.sites import site


class Plan:
    """How an op with certain arguments is issued."""

    __slots__ = ("attrs", "floats", "inputs", "op", "results")

    def __init__(
        self,
        op: str,
        inputs: list[int],
        attrs: dict[str, Any] | None,
        floats: list[tuple[str, int]],
        results: Results,
    ) -> None:
        self.op = op
        self.inputs = inputs
        """Which of the arguments are the instruction's inputs, in its order."""
        self.attrs = attrs
        self.floats = floats
        """Attributes that are floats, and the argument each comes from: they may be others next time."""
        self.results = results


def kernel(name: str) -> Callable[..., Any]:
    """The kernel of an op; its schema is read when it is first called.

    An op with arguments like earlier ones is issued here, without a call in between: this is the path of
    nearly every op of a program.
    """
    op: Operation | None = None
    plans: dict[tuple[Any, ...], Plan | None] = {}

    def run(*args: Any, **kwargs: Any) -> Any:
        nonlocal op, plans
        flat: list[Any] = []
        key: list[Any] = []
        try:
            for one in args:
                kind = type(one)
                if kind is _Tensor or kind is _Parameter:
                    buffer = one.untyped_storage().tapestry
                    layout = buffer.layout
                    if layout is None:
                        layout = Layout(tuple(one.shape), one.stride(), one.dtype)
                        flat.append(one)
                    else:
                        flat.append(buffer)
                    key.append(layout)
                else:
                    _take(one, flat, key)
            for keyword, one in kwargs.items():
                key.append(keyword)
                _take(one, flat, key)
            plan = plans[tuple(key)]
        except (KeyError, AttributeError, TypeError):
            plan = None
        if plan is None:
            if op is None:
                op = operation(name)
                plans = op.plans
            return op.run(*args, **kwargs)
        attrs = plan.attrs
        if plan.floats:
            attrs = {**attrs} if attrs else {}
            for attribute, position in plan.floats:
                attrs[attribute] = flat[position]
        values = []
        for position in plan.inputs:
            one = flat[position]
            if type(one) is Buffer:
                value = one.value
                values.append(value if type(value) is Handle else one.read())
            else:
                values.append(read(one))
        client = values[0].client
        number = client.next_id()
        client.emit(Op(number, plan.op, tuple([one.id for one in values]), attrs, site(client)))
        if number >= client.next_flush:
            client.next_flush = number + client.pass_on()
        results = plan.results
        made = Handle(client, number)
        return create(results, made) if type(results) is Layout else several(results, made)

    return run


_Tensor, _Parameter = torch.Tensor, torch.nn.Parameter


class Operation:
    """Issues one aten op."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.kernel = kernel(schema.name)
        self._lower = lowering.TABLE.get(schema.name)
        self.plans: dict[tuple[Any, ...], Plan | None] = {}
        """How it was issued before, by its arguments."""
        self._checked: set[tuple[Any, ...]] = set()
        """Arguments of an in-place op that PyTorch accepts."""
        numbers = any(kind in ("bool", "int", "float", "number") for kind in schema.result_kinds)
        self.run: Callable[..., Any] = self._run
        if schema.mutated:
            self.run = self._run_mutating
        elif numbers:
            self.run = self._number
        elif schema.dynamic:
            self.run = self._ask

    # --- ops that change nothing ---

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        """Issue the op with arguments that it never had before; the results are new tensors."""
        args = _distinct(args)
        given = self.schema.bind(args, kwargs)
        if self._moved(given):
            return self._issue_once(given)
        flat: list[Any] = []
        key: list[Any] = []
        for one in args:
            _take(one, flat, key)
        for name, one in kwargs.items():
            key.append(name)
            _take(one, flat, key)
        try:
            results = results_on_meta(self.schema, given)
        except Exception as error:  # noqa: BLE001 - raised again, unless the worker knows better
            return self._refused(given, error)
        op, tensors, attrs = self._encoded(given)
        plan = _plan(op, tensors, attrs, flat, results)
        if plan is not None and plan.inputs and not self.schema.creates:
            if len(self.plans) > 10_000:
                self.plans.clear()
            self.plans[tuple(key)] = plan
        return several(results, self._emit(op, tensors, attrs))

    @staticmethod
    def _emit(op: str, tensors: list[torch.Tensor], attrs: dict[str, Any] | None) -> Handle:
        values = [read(one) for one in tensors]
        if not values:
            return emit(op, (), attrs)
        client = values[0].client
        number = client.next_id()
        client.emit(Op(number, op, tuple([one.id for one in values]), attrs, site(client)))
        if number >= client.next_flush:
            client.next_flush = number + client.pass_on()
        return Handle(client, number)

    def _issue_once(self, given: dict[str, Any]) -> Any:
        """Issue the op without remembering how."""
        try:
            results = results_on_meta(self.schema, given)
        except Exception as error:  # noqa: BLE001 - raised again, unless the worker knows better
            return self._refused(given, error)
        return several(results, self._emit(*self._encoded(given)))

    def _encoded(self, given: dict[str, Any]) -> tuple[str, list[torch.Tensor], dict[str, Any] | None]:
        """The instruction's op, inputs and attributes."""
        if self._lower is not None:
            lowered = self._lower(given)
            if lowered is not None:
                return lowered[0], list(lowered[1]), lowered[2]
        return self.schema.name, *_encode(self.schema, given)

    def _ask(self, *args: Any, **kwargs: Any) -> Any:
        """Issue an op whose results' shapes depend on data: the worker says them."""
        given = self.schema.bind(args, kwargs)
        self._moved(given)
        value = self._emit(*self._encoded(given))
        return several(ask(value, self.schema), value)

    def _number(self, *args: Any, **kwargs: Any) -> Any:
        """Issue an op whose result is a number, and wait for it."""
        given = self.schema.bind(args, kwargs)
        self._moved(given)
        value = self._emit(*self._encoded(given))
        return value.client.fetch(value.id).item()

    def _refused(self, given: dict[str, Any], error: Exception) -> Any:
        """The meta device refused these arguments: if the worker does, too, that is the error."""
        try:
            value = self._emit(*self._encoded(given))
            return several(ask(value, self.schema), value)
        except WorkerError as refused:
            raise error from refused

    # --- ops that change their arguments ---

    def _run_mutating(self, *args: Any, **kwargs: Any) -> Any:
        schema = self.schema
        given = schema.bind(args, kwargs)
        self._moved(given)
        functional = schema.functional
        if functional is not None and all(one.kind == "tensor" for one in schema.mutated):
            if not any(one.keyword for one in schema.mutated):
                self._check_in_place(given)
            kept = {name: one for name, one in given.items() if name in functional.by_name}
            positional = [kept.pop(one.name) for one in functional.positional]
            made = operation(functional.name).kernel(*positional, **_without_defaults(kept, functional))
            made = made if isinstance(made, tuple) else (made,)
            for one, result in zip(schema.mutated, made, strict=True):
                assign(given[one.name], result, resize=one.keyword)
            fresh = iter(())
        else:
            fresh = iter(self._mutate_copies(given))
        results = [given[name] if name is not None else next(fresh) for name in schema.returned]
        return results[0] if len(results) == 1 else tuple(results) if results else None

    def _check_in_place(self, given: dict[str, Any]) -> None:
        """Raise what PyTorch raises for a result that does not fit."""
        if self.schema.packet not in ("fill_", "zero_"):  # the same everywhere
            for one in self.schema.mutated:
                check_distinct(given[one.name])
        key = tuple([_key(one) for one in given.values()])
        if key not in self._checked and not self.schema.dynamic:
            results_on_meta(self.schema, given)
            self._checked.add(key)

    def _mutate_copies(self, given: dict[str, Any]) -> list[Any]:
        """Issue an op that has no functional form: the worker changes copies and gives them back.

        The result is the op's own results that are new tensors.
        """
        fresh: list[Any] = []
        if None in self.schema.returned:
            found = results_on_meta(self.schema, given)
            found = found if isinstance(found, list) else [found]
            fresh = [one for one, name in zip(found, self.schema.returned, strict=True) if name is None]
        value = self._emit(self.schema.name, *_encode(self.schema, given))
        changed: list[torch.Tensor] = []
        for one in self.schema.mutated:
            argument = given[one.name]
            changed += (
                argument if isinstance(argument, list | tuple) else [argument] if argument is not None else []
            )
        if len(changed) == 1 and not fresh:
            write(changed[0], value)
            return []
        for index, tensor in enumerate(changed):
            write(tensor, Item(value, len(fresh) + index))
        return [create(layout, Item(value, index)) for index, layout in enumerate(fresh)]

    def _moved(self, given: dict[str, Any]) -> bool:
        """Move numbers that are CPU tensors to the device. Raises for other tensors that are not on it."""
        moved = False
        for name, one in given.items():
            if isinstance(one, torch.Tensor) and one.device.type != DEVICE.type:
                if one.dim() or self.schema.by_name[name].mutated:
                    raise RuntimeError(
                        "Expected all tensors to be on the same device, but found at least two devices, "
                        f"tapestry:0 and {one.device}! (in {self.schema.name}, argument {name})"
                    )
                given[name] = one.to(DEVICE)
                moved = True
        return moved


_operations: dict[str, Operation] = {}


def operation(name: str) -> Operation:
    """The operation of an overload, by name."""
    found = _operations.get(name)
    if found is None:
        found = _operations[name] = Operation(schema_of(name))
    return found


def assign(target: torch.Tensor, result: torch.Tensor, resize: bool = False) -> None:
    """Give a tensor the elements of a result of the device, converted to its dtype."""
    if resize and target.shape != result.shape:
        target.resize_(result.shape)
    value = read(result)
    if result.dtype != target.dtype:
        value = emit("aten::_to_copy", (value,), {"dtype": name_of(target.dtype)})
    if result.shape != target.shape:
        value = emit("expand", (value,), {"shape": list(target.shape)})
        if target.is_contiguous():
            value = emit("aten::clone", (value,), {"memory_format": "torch.contiguous_format"})
    elif result.stride() != target.stride() and target.is_contiguous():
        # Kernels rely on the strides that PyTorch knows of: the worker's value must have them, too.
        value = emit("aten::clone", (value,), {"memory_format": "torch.contiguous_format"})
    write(target, value)


def several(results: Results, value: Handle) -> Any:
    """New tensors for the results of an op."""
    if type(results) is Layout:
        return create(results, value)
    made: list[Any] = []
    index = 0
    assert isinstance(results, list)
    for one in results:
        if isinstance(one, list):
            made.append([create(layout, Item(value, index + n)) for n, layout in enumerate(one)])
            index += len(one)
        elif isinstance(one, Layout):
            made.append(create(one, Item(value, index)))
            index += 1
        else:
            made.append(one)
    return made[0] if len(made) == 1 else tuple(made)


# --- arguments ---


def _take(one: Any, flat: list[Any], key: list[Any]) -> None:
    """Add an argument to the flat list of all, and what results can depend on to the key."""
    kind = type(one)
    if kind is _Tensor or kind is _Parameter:
        buffer = one.untyped_storage().tapestry
        key.append(buffer.layout or Layout(tuple(one.shape), one.stride(), one.dtype))
        flat.append(one)
    elif kind is list or kind is tuple:
        key.append(len(one))
        for item in one:
            _take(item, flat, key)
    elif kind is float:
        key.append(float)
        flat.append(one)
    else:
        key.append(kind)
        key.append(one)


def _distinct(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, with an alias in place of a tensor that was there before: a plan tells them apart."""
    seen: set[int] = set()
    result = []
    for one in args:
        if type(one) is _Tensor or type(one) is _Parameter:
            if id(one) in seen:
                one = one.detach()
            seen.add(id(one))
        result.append(one)
    return tuple(result)


def _plan(
    op: str, tensors: list[torch.Tensor], attrs: dict[str, Any] | None, flat: list[Any], results: Results
) -> Plan | None:
    """How to issue this again; None if an argument does not appear in the instruction as it is."""
    position = {id(one): n for n, one in enumerate(flat)}
    if any(id(one) not in position for one in tensors):
        return None
    floats = [(name, position[id(one)]) for name, one in (attrs or {}).items() if id(one) in position]
    wanted = sum(type(one) is float for one in flat)
    if len(floats) != wanted or len(position) != len(flat):
        return None
    return Plan(op, [position[id(one)] for one in tensors], attrs, floats, results)


def _without_defaults(given: dict[str, Any], schema: Schema) -> dict[str, Any]:
    return {name: one for name, one in given.items() if one is not schema.by_name[name].default}


def _encode(schema: Schema, given: dict[str, Any]) -> tuple[list[torch.Tensor], dict[str, Any] | None]:
    """An op's inputs and attributes as they travel: `gt.worker.engine.torch.aten` reads them."""
    inputs: list[torch.Tensor] = []
    attrs: dict[str, Any] = {}
    for one in schema.arguments:
        value = given[one.name]
        if one.kind == "tensor":
            if isinstance(value, torch.Tensor):
                inputs.append(value)
            else:
                attrs[one.name] = _attribute(value)  # a number
        elif one.kind == "optional tensor":
            if value is not None:
                inputs.append(value)
                attrs[one.name] = True
        elif one.kind == "tensors":
            if value is not None:
                inputs += value
                attrs[one.name] = len(value)
        elif one.kind == "optional tensors":
            inputs += [tensor for tensor in value if tensor is not None]
            attrs[one.name] = [tensor is not None for tensor in value]
        elif value != one.default and one.name not in IGNORED:
            attrs[one.name] = _attribute(value)
    return inputs, attrs or None


def _attribute(value: Any) -> Any:
    if isinstance(value, torch.dtype | torch.memory_format):
        return str(value)
    if isinstance(value, complex):
        return ["complex", value.real, value.imag]
    if isinstance(value, list | tuple):
        return [_attribute(one) for one in value]
    return value


def _key(one: Any) -> Any:
    if isinstance(one, torch.Tensor):
        return one.shape, one.stride(), one.dtype
    if isinstance(one, list | tuple):
        return tuple([_key(item) for item in one])
    return float if type(one) is float else (type(one), one)
