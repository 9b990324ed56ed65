"""The kernels of the device: an aten op becomes an instruction of the stream.

PyTorch's dispatcher calls a kernel below autograd, for every aten op that is not composed of others. The
instruction of an op depends on its arguments' layouts and on its other arguments, except floats. So it is
determined once (`Plan`) and cached. The layouts of results come from the meta device.

An in-place op is issued as its functional form, and the results are stored in the buffers of the changed
arguments.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from gt.errors import WorkerError
from gt.ops.aten import RESULTS
from gt.stream.instructions import Op
from gt.torch import lowering
from gt.torch.arguments import encode, move_to_device, row_infers
from gt.torch.buffers import (
    Buffer,
    Handle,
    Layout,
    check_distinct,
    create,
    current_client,
    emit,
    emit_aten,
    items,
    layout_of,
    name_of,
    read,
    write,
)
from gt.torch.checks import check
from gt.torch.device import check_index
from gt.torch.plans import Plan, add_argument, flat_and_key, plan_of, without_aliases
from gt.torch.results import Results, fetch_results, results_attribute, results_on_meta
from gt.torch.schemas import Schema, schema_of
from gt.torch.sites import site


def kernel(name: str) -> Callable[..., Any]:
    """The kernel of an op; its schema is read when it is first called.

    An op that has a plan for its arguments is issued in this function, without further calls: nearly all ops
    of a program are.
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
                    add_argument(one, flat, key)
            if kwargs:
                for keyword, one in kwargs.items():
                    key.append(keyword)
                    add_argument(one, flat, key)
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
        ids = []
        value: Any = None
        for position in plan.inputs:
            one = flat[position]
            if type(one) is Buffer:
                value = one.value
                if type(value) is not Handle:
                    value = one.read()
            else:
                value = flat[position] = read(one)  # keeps a view's value alive until it is an input
            ids.append(value.id)
        client = current_client() if value is None else value.client
        number = client.next_id()
        client.emit(Op(number, plan.op, tuple(ids), attrs, site(client)))
        if number >= client.next_flush:
            client.next_flush = number + client.flush_ready()
        results = plan.results
        made = Handle(client, number)
        if results is None:
            write(args[0], made)
            return args[0]
        return create(results, made) if type(results) is Layout else several(results, made)

    return run


_Tensor, _Parameter = torch.Tensor, torch.nn.Parameter


class Operation:
    """Issues one aten op."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.kernel = kernel(schema.name)
        self._lower = lowering.ROW_LOWERINGS.get(schema.name)
        self.plans: dict[tuple[Any, ...], Plan | None] = {}
        """Its plans, by key: see `plans.flat_and_key`."""
        self._checked: set[tuple[Any, ...]] = set()
        """Keys of arguments of an in-place op that PyTorch has accepted."""
        numbers = any(kind in ("bool", "int", "float", "number") for kind in schema.result_kinds)
        self.run: Callable[..., Any] = self._run
        if schema.mutated:
            self.run = self._run_mutating
        elif numbers:
            self.run = self._run_scalar
        elif schema.dynamic:
            self.run = self._run_dynamic
        elif not schema.returned:
            self.run = self._run_check

    # --- functional ops ---

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        """Issue the op with arguments that have no plan yet; returns new tensors."""
        args = without_aliases(args)
        given = self.schema.bind(args, kwargs)
        if move_to_device(self.schema, given) or self.schema.random:
            return self._issue_once(given)
        if self.schema.creates:
            check_index(given["device"])
        flat, key = flat_and_key(args, kwargs)
        try:
            results = results_on_meta(self.schema, given)
        except Exception as error:  # noqa: BLE001 - raised again, unless the worker computes it
            return self._refused(given, error)
        op, tensors, attrs = self._encoded(given, results)
        plan = plan_of(op, tensors, attrs, flat, results)
        # The size of arange(4.0) depends on a float.
        if plan is not None and (plan.inputs or not plan.floats):
            self._add_plan(key, plan)
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
            client.next_flush = number + client.flush_ready()
        return Handle(client, number)

    def _issue_once(self, given: dict[str, Any]) -> Any:
        """Issue the op without making a plan."""
        try:
            results = results_on_meta(self.schema, given)
        except Exception as error:  # noqa: BLE001 - raised again, unless the worker computes it
            return self._refused(given, error)
        return several(results, self._emit(*self._encoded(given, results)))

    def _encoded(
        self, given: dict[str, Any], results: Results
    ) -> tuple[str, list[torch.Tensor], dict[str, Any] | None]:
        """The instruction's op, inputs and attributes."""
        if self._lower is not None:
            lowered = self._lower(given)
            if lowered is not None and row_infers(lowered, results):
                return lowered[0], list(lowered[1]), lowered[2]
        tensors, attrs = encode(self.schema, given)
        return self.schema.name, tensors, {**(attrs or {}), RESULTS: results_attribute(results)}

    def _run_dynamic(self, *args: Any, **kwargs: Any) -> Any:
        """Issue an op whose results' shapes depend on data, and wait for the worker to report them."""
        given = self.schema.bind(args, kwargs)
        move_to_device(self.schema, given)
        check(self.schema.name, given)
        value = self._emit(self.schema.name, *encode(self.schema, given))
        return _tensors(*fetch_results(value, self.schema))

    def _run_scalar(self, *args: Any, **kwargs: Any) -> Any:
        """Issue an op whose result is a number, and wait for it."""
        given = self.schema.bind(args, kwargs)
        move_to_device(self.schema, given)
        value = self._emit(self.schema.name, *encode(self.schema, given))
        return value.client.fetch(value.id).item()

    def _run_check(self, *args: Any, **kwargs: Any) -> None:
        """Run an op that only raises errors, such as for a singular matrix, on the CPU now, with the tensors'
        data."""
        given = self.schema.bind(args, kwargs)
        here = {name: one.cpu() if isinstance(one, torch.Tensor) else one for name, one in given.items()}
        positional = [here.pop(one.name) for one in self.schema.positional]
        self.schema.function(*positional, **here)

    def _refused(self, given: dict[str, Any], error: Exception) -> Any:
        """The results of an op that the meta device refused. If the worker refuses it, too, raise `error`."""
        try:
            value = self._emit(self.schema.name, *encode(self.schema, given))
            return _tensors(*fetch_results(value, self.schema))
        except WorkerError as refused:
            raise error from refused

    # --- in-place ops ---

    def _run_mutating(self, *args: Any, **kwargs: Any) -> Any:
        schema = self.schema
        args = without_aliases(args)
        given = schema.bind(args, kwargs)
        is_moved = move_to_device(self.schema, given)
        functional = schema.functional
        if functional is not None and all(one.kind == "tensor" for one in schema.mutated):
            self._check_in_place(given)
            kept = {name: one for name, one in given.items() if name in functional.by_name}
            positional = [kept.pop(one.name) for one in functional.positional]
            # A random op may have a kernel in `random_ops`.
            compute = functional.function if schema.random else operation(functional.name).kernel
            made = compute(*positional, **_without_defaults(kept, functional))
            made = made if isinstance(made, tuple) else (made,)
            alone = schema.returned == ["self"] and len(made) == 1 and not schema.random
            if alone and not is_moved and fits(args[0], made[0]):
                self._remember_in_place(functional, args, kwargs, layout_of(made[0]))
            for one, result in zip(schema.mutated, made, strict=True):
                if not torch.can_cast(result.dtype, given[one.name].dtype):
                    raise RuntimeError(
                        f"{schema.packet}: result type {name_of(result.dtype)} can't be cast to the desired "
                        f"output type {name_of(given[one.name].dtype)}"
                    )
                assign(given[one.name], result, resize=one.keyword)
            fresh = iter(())
        else:
            fresh = iter(self._mutate_copies(given))
        results = [given[name] if name is not None else next(fresh) for name in schema.returned]
        return results[0] if len(results) == 1 else tuple(results) if results else None

    def _remember_in_place(
        self, functional: Schema, args: tuple[Any, ...], kwargs: dict[str, Any], result: Layout
    ) -> None:
        """Add a plan for an op whose result can replace the elements of its first argument."""
        flat, key = flat_and_key(args, kwargs)
        given = self.schema.bind(args, kwargs)
        kept = {name: one for name, one in given.items() if name in functional.by_name}
        plan = plan_of(*operation(functional.name)._encoded(kept, result), flat, None)
        if plan is not None:
            self._add_plan(key, plan)

    def _add_plan(self, key: tuple[Any, ...], plan: Plan) -> None:
        if len(self.plans) > 10_000:
            self.plans.clear()
        self.plans[key] = plan

    def _check_in_place(self, given: dict[str, Any]) -> None:
        """Raise the error of PyTorch for a result that does not fit."""
        if self.schema.packet not in ("fill_", "zero_"):  # the same everywhere
            for one in self.schema.mutated:
                check_distinct(given[one.name])
        key = tuple([_key(one) for one in given.values()])
        if key not in self._checked and not self.schema.dynamic:
            with contextlib.suppress(NotImplementedError):  # the meta device has not all forms with `out=`
                results_on_meta(self.schema, given)
            self._checked.add(key)

    def _mutate_copies(self, given: dict[str, Any]) -> list[Any]:
        """Issue an op that has no functional form: the worker changes copies of its arguments.

        Returns the results that are new tensors.
        """
        fresh = self._prepare_results(given)
        changed: list[torch.Tensor] = []
        for one in self.schema.mutated:
            argument = given[one.name]
            changed += (
                argument if isinstance(argument, list | tuple) else [argument] if argument is not None else []
            )
        made = [*fresh, *map(layout_of, changed)]
        tensors, attrs = encode(self.schema, given)
        attrs = {**(attrs or {}), RESULTS: results_attribute(made if len(made) > 1 else made[0])}
        value = self._emit(self.schema.name, tensors, attrs)
        values = items(value, len(made)) if len(made) > 1 else [value]
        for tensor, one in zip(changed, values[len(fresh) :], strict=True):
            write(tensor, one)
        return [create(layout, one) for layout, one in zip(fresh, values, strict=False)]

    def _prepare_results(self, given: dict[str, Any]) -> list[Layout]:
        """Resize the tensors of `out=` to the results; returns the layouts of the results that are new
        tensors."""
        returned = self.schema.returned
        if not any(name is None or self.schema.by_name[name].keyword for name in returned):
            return []
        try:
            found = results_on_meta(self.schema, given)
        except NotImplementedError:  # the meta device has not all forms with `out=`
            if None in returned:
                raise
            return []
        fresh: list[Layout] = []
        for layout, name in zip(found if isinstance(found, list) else [found], returned, strict=True):
            if name is None:
                fresh.append(layout)
            elif given[name].shape != layout.size:
                given[name].resize_(layout.size)
        return fresh


_operations: dict[str, Operation] = {}


def operation(name: str) -> Operation:
    """The operation of an overload, by name."""
    found = _operations.get(name)
    if found is None:
        found = _operations[name] = Operation(schema_of(name))
    return found


_CONTIGUOUS = {"memory_format": "torch.contiguous_format"}


def fits(target: torch.Tensor, result: torch.Tensor) -> bool:
    """Whether a result can replace the elements of a tensor without a conversion."""
    return (
        result.dtype == target.dtype
        and result.shape == target.shape
        # Kernels rely on the strides that PyTorch has for a tensor: the worker's value must have them, too.
        and (result.stride() == target.stride() or not target.is_contiguous())
    )


def assign(target: torch.Tensor, result: torch.Tensor, resize: bool = False) -> None:
    """Give a tensor the elements of a result of the device, converted to its dtype."""
    if resize and target.shape != result.shape:
        target.resize_(result.shape)
    value = read(result)
    if not fits(target, result):
        if result.dtype != target.dtype:
            attrs = {"dtype": name_of(target.dtype)}
            value = emit_aten("aten::_to_copy", (value,), attrs, result.shape, target.dtype)
        if result.shape != target.shape:
            value = emit("expand", (value,), {"shape": list(target.shape)})
        if target.is_contiguous() and (result.shape, result.stride()) != (target.shape, target.stride()):
            value = emit_aten("aten::clone", (value,), _CONTIGUOUS, target.shape, target.dtype)
    write(target, value)


def several(results: Results, value: Handle) -> Any:
    """New tensors for the results of an op."""
    if type(results) is Layout:
        return create(results, value)
    assert isinstance(results, list)
    count = sum(len(one) if isinstance(one, list) else isinstance(one, Layout) for one in results)
    return _tensors(results, items(value, count))


def _tensors(results: Results, given: list[Handle]) -> Any:
    """New tensors with these values."""
    if type(results) is Layout:
        return create(results, given[0])
    assert isinstance(results, list)
    values = iter(given)
    made: list[Any] = []
    for one in results:
        if isinstance(one, list):
            made.append([create(layout, next(values)) for layout in one])
        else:
            made.append(create(one, next(values)) if isinstance(one, Layout) else one)
    return made[0] if len(made) == 1 else tuple(made)


def _without_defaults(given: dict[str, Any], schema: Schema) -> dict[str, Any]:
    return {name: one for name, one in given.items() if one is not schema.by_name[name].default}


def _key(one: Any) -> Any:
    if isinstance(one, torch.Tensor):
        return one.shape, one.stride(), one.dtype
    if isinstance(one, list | tuple):
        return tuple([_key(item) for item in one])
    return float if type(one) is float else (type(one), one)
