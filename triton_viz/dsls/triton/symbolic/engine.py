"""The engine: runs a kernel once for all programs of its grid, and decides every access."""

import sys
import time
import types
from collections.abc import Sequence

import triton.language as tl

from triton_viz.core.call_path import kernel_columns
from triton_viz.core.data import Program
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.dsls.base import Call
from triton_viz.dsls.static_analysis import AccessVerdict, Analysis
from triton_viz.dsls.triton import compat, language_patches
from triton_viz.dsls.triton.grid_launch import constexpr_names
from triton_viz.dsls.triton.lane_machine import LaneSemantic, using
from triton_viz.dsls.triton.ops.types import plain, width
from triton_viz.dsls.triton.symbolic.deciding import BUDGET, Decider, Noted
from triton_viz.dsls.triton.symbolic.expression import FALSE, TRUE, both, forget
from triton_viz.dsls.triton.symbolic.expression_origin import Origin
from triton_viz.dsls.triton.symbolic.nodes import Cond
from triton_viz.dsls.triton.symbolic.solver import unknowns
from triton_viz.dsls.triton.symbolic.symbolic_arguments import as_symbolic
from triton_viz.dsls.triton.symbolic.symbolic_builder import SymbolicBuilder
from triton_viz.dsls.triton.symbolic.symbolic_flow import SymbolicFlow
from triton_viz.dsls.triton.symbolic.symbolic_ops import Stopped
from triton_viz.dsls.triton.symbolic.symbolic_range import Key, Restart
from triton_viz.dsls.triton.symbolic.symbolic_value import Symbolic

_MOST_ATTEMPTS = 8


def analyze(call: Call, grid: Program, tensors: Sequence[TensorInfo], decide: bool = True) -> Analysis:
    """Decide every access of a launch, at a cost that does not depend on the grid's size.

    With `decide=False` it only finds the tensors of each access. `tensors` are the launch's, with the names
    of `tensors_in`. The language is patched meanwhile, so the caller holds the lock of launches. It never
    raises: an error is reported as the reason why the analysis is incomplete.
    """
    if 0 in grid:
        return Analysis((), True)
    modes: dict[Key, str] = {}
    by_name = {tensor.name: tensor for tensor in tensors}
    best: Analysis | None = None
    end = time.monotonic() + BUDGET
    for _ in range(_MOST_ATTEMPTS):
        forget()
        run = _Run(call, grid, by_name, modes, end)
        try:
            reason = run.execute()
        except Restart as wish:
            modes[wish.key] = wish.mode
            continue
        verdicts = tuple(run.decide() if decide else run.locate())
        found = Analysis(verdicts, not reason, reason)
        if best is None or _rank(found) >= _rank(best):
            best = found
        again = run.worth_unrolling(verdicts) - modes.keys()
        if not again or not decide:
            break
        modes.update(dict.fromkeys(again, "unroll"))
    forget()
    return best or Analysis((), False, "its loops could not be followed")


def _rank(analysis: Analysis) -> tuple[bool, int]:
    return analysis.complete, -len(analysis.open)


class _Run:
    """One run of a kernel with symbolic program ids."""

    def __init__(
        self, call: Call, grid: Program, tensors: dict[str, TensorInfo], modes: dict[Key, str], end: float
    ):
        self._call, self._tensors = call, tensors
        self.builder = SymbolicBuilder(grid)
        self.semantic = LaneSemantic(self.builder)
        self.flow = SymbolicFlow(self.semantic, language_patches.substitutes(), modes)
        self.builder.scope = self.flow.counters
        self.builder.note = self._note
        self.builder.inline = self.flow.inline
        self._decider = Decider(grid, tensors, end)
        self._noted: dict[tuple, Noted] = {}
        self._running = False

    def execute(self) -> str:
        """Run the kernel. Returns the reason why it stopped early, empty if it did not."""
        fn = self._call.fn
        constants, types = constexpr_names(fn), compat.annotated_types(fn)
        try:
            with language_patches.patched(), using(self):
                values = {
                    name: plain(argument)
                    if name in constants
                    else as_symbolic(argument, name, self._tensors, self.semantic, types.get(name))
                    for name, argument in self._call.arguments.items()
                }
                self._running = True
                self.flow.run(fn, **values)
        except Restart:
            raise
        except Stopped as stop:
            return str(stop)
        except RecursionError:
            return "its expressions are nested too deeply"
        except Exception as error:  # noqa: BLE001 - whatever a kernel or its language raises
            return f"{type(error).__name__}: {error}"
        return ""

    def decide(self) -> list[AccessVerdict]:
        """The verdict of each access."""
        return [self._decider.decide(noted) for noted in self._noted.values()]

    def locate(self) -> list[AccessVerdict]:
        """The tensors whose pointers each access uses."""
        return [self._decider.locate(noted) for noted in self._noted.values()]

    def worth_unrolling(self, verdicts: Sequence[AccessVerdict]) -> set[Key]:
        """The loops whose unrolling might decide an undecided access."""
        keys = set()
        for verdict, noted in zip(verdicts, self._noted.values(), strict=True):
            if verdict.verdict in ("concrete", "undecided"):
                reasons = [one.args[1] for one in unknowns(noted.address, noted.condition)]
                loops = {reason.loop for reason in reasons}
                if None not in loops:  # if it depends on data, unrolling does not decide it
                    keys |= loops
        return {key for key in keys if key is not None}

    def _note(self, kind: str, pointers: Symbolic, mask: Cond, masked: bool = False) -> None:
        flow = self.flow
        if flow.muted or flow.active is FALSE:
            return
        path, columns = kernel_columns(self._call.fn) if self._running else ((), ())
        noted = Noted(
            call_path=path,
            kind=kind,
            loops=tuple(flow.where()),
            address=pointers.sum,
            condition=both(flow.active, mask),
            masked=masked or mask is not TRUE,
            width=width(pointers.dtype),
            shape=pointers.shape,
            origin=pointers.origin,
            names=_names() if self._running else {},
            columns=columns,
        )
        key = path, columns, kind, noted.loops, noted.address, noted.condition, noted.width
        self._noted.setdefault(key, noted)


def _names() -> dict[Origin, str]:
    """The names of the kernel's variables, by the origins of their current values."""
    found: dict[Origin, str] = {}
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        if "__flow" in frame.f_globals:  # a rewritten function
            for name, value in frame.f_locals.items():
                if isinstance(value, tl.tensor) and isinstance(value.handle, Symbolic) and name[:2] != "__":
                    found.setdefault(value.handle.origin, name)
        frame = frame.f_back
    return found
