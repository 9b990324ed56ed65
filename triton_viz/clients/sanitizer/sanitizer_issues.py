"""Converts findings to issues, with the names and indices of the kernel's source."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from triton_viz.clients.sanitizer.checks import Violation
from triton_viz.clients.sanitizer.sites import Known, Spot
from triton_viz.core.data import Issue, Program
from triton_viz.core.records.accesses import elements_of
from triton_viz.core.records.columns import Numbers, Programs
from triton_viz.core.records.tensor_info import TensorInfo

_VERBS = {"load": "loads", "store": "stores to", "atomic": "changes"}


@dataclasses.dataclass
class Finding:
    """A violation at one spot, merged over all programs."""

    violation: Violation
    program_id: int
    """The linear id of the first program."""
    width: int
    iterations: tuple[tuple[int, int], ...] = ()
    masked: bool = False
    elements: int = 0
    programs: np.ndarray = dataclasses.field(default_factory=lambda: np.empty(0, np.int64))
    """The number of programs with the violation."""

    def merge(self, other: "Finding") -> "Finding":
        """Both findings merged; the example is of the first program in the grid."""
        first = self if self.program_id <= other.program_id else other
        programs = np.union1d(self.programs, other.programs)
        return dataclasses.replace(first, elements=self.elements + other.elements, programs=programs)


@dataclasses.dataclass(frozen=True)
class Context:
    """The data of a launch that messages need."""

    grid: Program
    scalars: Mapping[str, Any]
    """The integer arguments, by name."""


def issue_of(finding: Finding, spot: Spot, known: Known, context: Context) -> Issue:
    """An issue with the names and indices of the kernel's source."""
    path, _, access = spot
    violation = finding.violation
    tensor = violation.tensor
    programs = Programs(context.grid, Numbers(1, finding.program_id))
    offset = index = None
    past = 0
    if tensor is not None:
        offset = (violation.address - tensor.address) // tensor.itemsize
        index = index_of(tensor, violation.address)
        first, last = elements_of(tensor)
        if violation.address < first:
            past = violation.address - first
        elif violation.address + finding.width > last:
            past = violation.address + finding.width - last
    masked = finding.masked if known.masked is None else known.masked
    name = _element(tensor, index, offset, violation.address)
    return Issue(
        programs=programs,
        call_path=path,
        iterations=finding.iterations,
        kind=violation.kind,
        verdict="violation",
        message=f"program {programs.only()} {_VERBS[access]} {name}: {_why(violation, past)}{_many(finding)}",
        tensor=tensor.name if tensor is not None else "",
        index=index,
        offset=offset,
        past_end=past,
        mask=True if masked else None,
        expression=known.expression,
        suggestion=_suggestion(violation, past, index, masked, known, context.scalars),
    )


def undecided(spot: Spot, known: Known, reason: str, context: Context) -> Issue:
    """An issue for an access that could not be decided."""
    return Issue(
        programs=Programs(context.grid, Numbers(1, 0)),
        call_path=spot[0],
        kind="out of bounds",
        verdict="undecided",
        message=f"whether this {spot[2]} stays inside was not decided: {reason}",
        tensor=", ".join(known.tensors),
        expression=known.expression,
        suggestion="let the sanitizer run the kernel (execute=True): then it is checked on the data",
    )


def _many(finding: Finding) -> str:
    if finding.elements <= 1:
        return ""
    programs = len(finding.programs)
    whose = f"{programs:,} programs" if programs > 1 else "this program"
    return f". In all, {finding.elements:,} elements of {whose}"


def _element(
    tensor: TensorInfo | None, index: tuple[int, ...] | None, offset: int | None, address: int
) -> str:
    if tensor is None:
        return f"address {address % 2**64:#x}"
    if index is not None:
        return f"{tensor.name}[{', '.join(map(str, index))}]"
    return f"{tensor.name} at a distance of {offset} elements from its first"


def _why(violation: Violation, past: int) -> str:
    tensor = violation.tensor
    if violation.kind == "null pointer":
        return "no memory is there"
    if violation.kind == "misaligned":
        return "its address is not a multiple of its size, which a GPU refuses"
    if violation.kind == "foreign tensor":
        return "that tensor is neither an argument of the kernel nor in a table of pointers"
    if tensor is None:
        return "it is in none of the kernel's tensors"
    size = f"{tensor.name} has shape {tensor.shape} and strides {tensor.strides}"
    if violation.kind == "broadcast store":
        return f"{size}, so that several elements share one address, and it was stored to before"
    if violation.kind == "uninitialized":
        return "nothing was written to it before"
    if violation.kind == "overflow":
        return "an integer in its address does not fit its type, and wraps around"
    if past > 0:
        return f"{size}, so that is {past} bytes past its end"
    if past < 0:
        return f"{size}, so that is {-past} bytes before its beginning"
    return f"{size}, so that is between its elements"


def index_of(tensor: TensorInfo, address: int) -> tuple[int, ...] | None:
    """The index of an address, also outside of the tensor: there the axis of the largest stride exceeds its
    size."""
    offset, rest = divmod(address - tensor.address, tensor.itemsize)
    axes = [axis for axis, n in enumerate(tensor.shape) if tensor.strides[axis] and n != 1]
    if rest or not tensor.shape:
        return None
    if not axes:
        axes = [len(tensor.shape) - 1]
    index = [0] * len(tensor.shape)
    left = offset
    for axis in sorted(axes, key=lambda axis: -tensor.strides[axis]):
        index[axis], left = divmod(left, max(1, tensor.strides[axis]))
    return None if left else tuple(index)


def _suggestion(
    violation: Violation,
    past: int,
    index: tuple[int, ...] | None,
    masked: bool,
    known: Known,
    scalars: Mapping[str, Any],
) -> str:
    """A suggested change, or an empty text."""
    tensor = violation.tensor
    if violation.kind == "overflow":
        return "compute it in 64 bits: convert one factor with .to(tl.int64)"
    if violation.kind == "null pointer":
        return "skip programs whose pointer is 0, or put a pointer into the table"
    if violation.kind == "misaligned":
        return "count in elements of the pointer's type, not in bytes, and do not cast between types"
    if violation.kind == "foreign tensor":
        return "pass that tensor to the kernel, or a table with its data_ptr()"
    if violation.kind == "broadcast store":
        return f"store to a tensor of its own: {tensor.name if tensor else 'x'}.contiguous(), or torch.empty"
    if violation.kind == "uninitialized":
        return "begin with torch.zeros, or store to every element first"
    if tensor is None:
        return ""
    if known.described:
        return f"describe no more than {tensor.name} has: shape {tensor.shape}, strides {tensor.strides}"
    if not past:
        return f"use the strides of {tensor.name}, {tensor.strides}: it is not contiguous"
    bound = _bound(tensor, past, known, scalars)
    if index is None or not bound:
        return ""
    if not masked:
        return f"the access has no mask: add mask={bound}"
    return f"its mask lets this element through: let it include {bound}"


def _bound(tensor: TensorInfo, past: int, known: Known, scalars: Mapping[str, Any]) -> str:
    """The missing mask condition, in the user's names where these are known."""
    if len(tensor.shape) == 1 and tensor.strides == (1,):
        address = known.expression.partition("\n")[0]
        offset = address.removeprefix(f"{tensor.name} + ")
        is_variable = offset != address and offset.isidentifier() and offset not in scalars
        what = offset if is_variable else "(the index)"
        names = [name for name, value in scalars.items() if value == tensor.shape[0] and name != offset]
        return f"{what} < {names[0] if names else tensor.shape[0]}" if past > 0 else f"{what} >= 0"
    # The distance does not tell which index is out of bounds.
    bounds = []
    for axis, size in enumerate(tensor.shape):
        names = [name for name, value in scalars.items() if value == size]
        limit = names[0] if len(names) == 1 else size
        bounds.append(f"(the index along axis {axis} " + (f"< {limit})" if past > 0 else ">= 0)"))
    return " & ".join(bounds)
