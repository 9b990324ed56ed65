"""PyTorch's own samples of its ops (`op_db`) on the device and on the CPU: `tools/torch_ops.py` runs them.

Of each sample the results, the gradients, the arguments that the op changed, and the forms in place and with
`out=` are compared. What the CPU refuses, the device must refuse.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

import gt.torch  # noqa: F401 - registers the device

DEVICE = "tapestry"

DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64, torch.bfloat16, torch.float64)
"""The dtypes of the samples, of those that an op takes; one of its own if it takes none of these."""

UNINITIALIZED = frozenset(
    {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
)
"""Ops whose results' elements are whatever memory holds: only shapes and dtypes are compared."""

FROM_CPU = frozenset({"tensor_split"})
"""Ops that take all tensors but the first from the CPU, on every device."""


LOOSE = {"nn.functional.linear_cross_entropy": 20.0}
"""Ops whose results are the less exact, and by which factor: it rounds in every step of a loop of its own."""


class Differs(Exception):
    """The device gives something else than the CPU."""


class Refused(Exception):
    """The device raises, and the CPU does not."""


def name_of(op: Any) -> str:
    """An op's name, with its variant."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def dtypes_of(op: Any) -> list[torch.dtype]:
    """The dtypes to try an op with."""
    taken = op.supported_dtypes("cpu")
    return [one for one in DTYPES if one in taken] or sorted(taken, key=str)[:1]


def samples(op: Any, dtype: torch.dtype) -> Iterator[Any]:
    """PyTorch's samples of an op in a dtype. The same ones every time."""
    torch.manual_seed(0)
    grad = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    yield from op.sample_inputs("cpu", dtype, requires_grad=grad)


def compare(op: Any, sample: Any) -> bool:
    """Whether all values were compared: not those that are random.

    Raises `Differs` or `Refused` if a sample gives something else on the device than on the CPU.
    """
    given = (sample.input, sample.args, sample.kwargs)
    forms = [_Form(op, given, op.op, sample.output_process_fn_grad)]
    with contextlib.suppress(AttributeError):
        if op.inplace_variant is not None and not sample.broadcasts_input:
            forms.append(_Form(op, given, op.inplace_variant, None))
    if op.supports_out:
        forms.append(_Form(op, given, _into(op.op), None))
    compared = [form.compare() for form in forms]  # every one of them, also after the first that is random
    return all(compared)


class _Form:
    """An op, its form in place, or with `out=`; and the arguments of a sample."""

    def __init__(self, op: Any, given: Any, function: Any, for_gradient: Any) -> None:
        self.op = op
        self.function = function
        self.for_gradient = for_gradient
        """What of the results is differentiable, for the form that gradients are compared of."""
        self.given = given
        in_place = for_gradient is None
        self.here = tree_map(lambda one: _copied(one, "cpu", in_place), given)
        self.there = tree_map(lambda one: _copied(one, DEVICE, in_place), given)
        if op.name in FROM_CPU:
            self.there = (self.there[0], *self.here[1:])

    def compare(self) -> bool:
        try:
            wanted = self._run(self.here)
        except Exception as error:  # noqa: BLE001 - the CPU's refusal
            self._must_raise(error)
            return True
        try:
            got = self._run(self.there)
            torch.tapestry.synchronize()  # type: ignore[attr-defined]
        except Exception as error:
            raise Refused(_said(error)) from error
        values = self.op.name not in UNINITIALIZED
        try:
            self._same(wanted, got, values)
        except Differs:
            if not values or not self._is_random():
                raise
            values = False
            self._same(wanted, got, values)
        if values and self.for_gradient is not None and self.op.supports_autograd:
            self._compare_gradients(wanted, got)
        return values

    def _run(self, given: Any) -> Any:
        torch.manual_seed(0)
        if given is self.here:
            return self.function(given[0], *given[1], **given[2])
        with torch.device(DEVICE):  # for ops that make tensors from numbers alone
            return self.function(given[0], *given[1], **given[2])

    def _must_raise(self, error: Exception) -> None:
        try:
            found = self._run(self.there)
            for one in tree_leaves(found):
                if isinstance(one, torch.Tensor):
                    one.cpu()
        except Exception:  # noqa: BLE001 - as it should
            return
        raise Differs(f"the CPU refuses: {_said(error)}")

    def _same(self, wanted: Any, got: Any, values: bool) -> None:
        """Results, and arguments that may have been changed, are the same."""
        on_device = self.op.name not in FROM_CPU
        loose = LOOSE.get(self.op.name, 1.0)
        for a, b, result in ((wanted, got, True), (self.here, self.there, False)):
            here, there = tree_leaves(a), tree_leaves(b)
            if len(here) != len(there):
                raise Differs(f"{len(there)} results instead of {len(here)}")
            for one, other in zip(here, there, strict=True):
                _assert_same(other, one, values, on_device or result, loose)

    def _is_random(self) -> bool:
        """Whether the CPU's results depend on the seed."""
        results = []
        for seed in range(1, 9):  # two may give the same by chance
            torch.manual_seed(seed)
            given = tree_map(lambda one: _copied(one, "cpu", True), self.given)
            result = self.function(given[0], *given[1], **given[2])
            results.append([one for one in tree_leaves((result, given)) if isinstance(one, torch.Tensor)])
        first, *others = results
        return any(
            not torch.equal(a.nan_to_num(), b.nan_to_num())
            for other in others
            for a, b in zip(first, other, strict=True)
        )

    def _compare_gradients(self, wanted: Any, got: Any) -> None:
        pairs = [
            (a, b)
            for a, b in zip(tree_leaves(self.here), tree_leaves(self.there), strict=True)
            if isinstance(a, torch.Tensor) and a.requires_grad and a.is_leaf
        ]
        if not pairs:
            return
        try:
            here = self._gradients(wanted, [a for a, _ in pairs])
        except Exception as error:
            try:
                [one if one is None else one.cpu() for one in self._gradients(got, [b for _, b in pairs])]
            except Exception:  # noqa: BLE001 - as it should
                return
            raise Differs(f"backward: the CPU refuses: {_said(error)}") from error
        try:
            there = self._gradients(got, [b for _, b in pairs])
            torch.tapestry.synchronize()  # type: ignore[attr-defined]
        except Exception as error:
            raise Refused(f"backward: {_said(error)}") from error
        for a, b in zip(here, there, strict=True):
            if (a is None) != (b is None):
                raise Differs("backward: only one of the devices has a gradient")
            if a is not None:
                try:
                    _assert_same(b, a, True, True, LOOSE.get(self.op.name, 1.0))
                except Differs as error:
                    raise Differs(f"backward: {error}") from None

    def _gradients(self, results: Any, leaves: list[torch.Tensor]) -> Any:
        """The gradients of a weighted sum of the results: an error must not cancel out."""
        outputs = [
            one
            for one in tree_leaves(self.for_gradient(results))
            if isinstance(one, torch.Tensor) and one.requires_grad
        ]
        if not outputs:
            return [None for _ in leaves]
        generator = torch.Generator().manual_seed(0)
        weights = [
            torch.randn(one.shape, generator=generator, dtype=torch.float64).to(one.dtype).to(one.device)
            for one in outputs
        ]
        return torch.autograd.grad(outputs, leaves, weights, allow_unused=True)


def _into(function: Any) -> Any:
    """A function that calls another with `out=`, with tensors of the right shape for its results."""

    def run(*args: Any, **kwargs: Any) -> Any:
        with torch.no_grad():
            results = function(*args, **kwargs)
            made = tree_map(lambda one: torch.full_like(one, 1), results)
            if isinstance(made, tuple | list):
                made = tuple(made)
            function(*args, **kwargs, out=made)
        return made

    return run


def _copied(one: Any, device: str, plain: bool) -> Any:
    """An argument on a device. A view of a part of a storage is one there, too."""
    if isinstance(one, torch.device) or one == "cpu":
        return torch.device(device)
    if not isinstance(one, torch.Tensor):
        return one
    tensor = one.detach()
    if tensor.layout is not torch.strided or _is_whole(tensor):
        moved = tensor.clone().to(device)
    else:
        whole = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
        moved = whole.clone().to(device).as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
        moved = moved.conj() if tensor.is_conj() else moved
        moved = torch.ops.aten._neg_view(moved) if tensor.is_neg() else moved
    return moved.requires_grad_(one.requires_grad and not plain)


def _is_whole(tensor: torch.Tensor) -> bool:
    return tensor.numel() * tensor.dtype.itemsize == tensor.untyped_storage().nbytes()


def _said(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return f"{type(error).__name__}: {text}"


_TOLERANCE = {
    torch.float32: 1e-4,
    torch.complex64: 1e-4,
    torch.bfloat16: 2e-2,
    torch.float16: 2e-3,
    torch.complex32: 2e-3,
    torch.float64: 1e-7,
    torch.complex128: 1e-7,
}


def _assert_same(found: Any, expected: Any, values: bool, on_device: bool, loose: float) -> None:
    if not isinstance(expected, torch.Tensor):
        if isinstance(expected, bool | int | str) and found != expected:
            raise Differs(f"{found} is not {expected}")
        return
    if on_device and found.device.type != DEVICE:
        raise Differs(f"the result is on {found.device}")
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        raise Differs(f"{found.dtype}{list(found.shape)} is not {expected.dtype}{list(expected.shape)}")
    if values:
        tolerance = _TOLERANCE.get(expected.dtype, 0) * loose
        try:
            torch.testing.assert_close(
                found.detach().cpu(),
                expected.detach(),
                equal_nan=True,
                rtol=tolerance,
                atol=tolerance / (2 if expected.dtype is torch.bfloat16 else 10),
                check_layout=True,
            )
        except AssertionError as error:
            raise Differs(" ".join(str(error).split())) from None
