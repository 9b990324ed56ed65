"""The sanitizer: proves that all accesses of a kernel are in bounds, or reports an element that is not."""

import dataclasses
import functools
import threading
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from triton_viz.clients.sanitizer import uninitialized, wrapping
from triton_viz.clients.sanitizer.checks import (
    Block,
    BroadcastStores,
    Given,
    Violation,
    check,
    is_broadcast,
    of_nearest,
)
from triton_viz.clients.sanitizer.fake_memory import FAKE_OPS
from triton_viz.clients.sanitizer.sanitizer_issues import Context, Finding, issue_of, undecided
from triton_viz.clients.sanitizer.sites import Known, Spot, known_spots
from triton_viz.clients.sanitizer.verdict import Verdict
from triton_viz.clients.sanitizer.witnesses import proved_violations
from triton_viz.clients.utils import here, kernel_columns
from triton_viz.core.client import Client, ForLoopCallbacks, OpCallbacks, tensors_in
from triton_viz.core.config import cfg
from triton_viz.core.data import Access, Atomic, Compute, Issue, Load, Op, Program, Record, Site, Store
from triton_viz.core.patch import running_backend
from triton_viz.core.records.columns import Programs, linear_program_id
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.dsls import find_dsl
from triton_viz.dsls.base import Accessed, Call
from triton_viz.dsls.static_analysis import AccessVerdict, Analysis, Witness
from triton_viz.errors import SanitizerError, UnsupportedError
from triton_viz.executor.memory import Mask

_ACCESS = {Load: "load", Store: "store", Atomic: "atomic"}


class Sanitizer(Client):
    """Finds invalid accesses of a kernel. Options:

    execute        False: only prove, do not run the kernel. The cost does not depend on the grid.
    abort_on_error raise a `SanitizerError` for the first launch with a violation.
    initcheck      also find elements that are read before anything was written to them.
    fake_memory    run the kernel without reading or writing: every load gives 0.

    `cfg.sanitizer` selects the implementation. "symbolic" proves accesses before the launch and checks the
    others while the kernel runs, "concrete" checks every access while it runs, and "off" does nothing.
    """

    NAME: ClassVar[str] = "sanitizer"
    vectorized: ClassVar[bool] = True
    finds_issues: ClassVar[bool] = True

    def __new__(cls, *args: Any, **kwargs: Any) -> "Sanitizer":
        """The implementation that `cfg.sanitizer` names."""
        if cls is not Sanitizer:
            return super().__new__(cls)
        kinds = {"symbolic": SymbolicSanitizer, "concrete": ConcreteSanitizer, "off": NoSanitizer}
        if cfg.sanitizer not in kinds:
            names = ", ".join(map(repr, kinds))
            raise UnsupportedError(f"config.sanitizer is {cfg.sanitizer!r}; it must be one of {names}")
        return super().__new__(kinds[cfg.sanitizer])

    def __init__(
        self,
        execute: bool = True,
        abort_on_error: bool = False,
        initcheck: bool = False,
        fake_memory: bool = False,
    ):
        self.execute, self.abort_on_error = execute, abort_on_error
        self.initcheck, self.fake_memory = initcheck, fake_memory
        self.issues: list[Issue] = []
        """The issues of all launches so far."""
        self._lock = threading.RLock()
        self._records: list[Record] | None = []
        if initcheck:
            uninitialized.watch(self)

    # --- a launch ---

    def pre_run_callback(self, fn: Callable) -> None:
        """Start over for a new launch."""
        self._kernel = fn
        self._context = Context((0, 0, 0), {})
        self._arguments: dict[str, Any] = {}
        self._tensors: dict[str, TensorInfo] = {}
        self._fresh: dict[int, uninitialized.Fresh] = {}
        self._analysis = Analysis((), False, "the launch did not begin")
        self._spots: dict[Spot, Known] = {}
        self._seen: dict[Spot, tuple[str, ...]] = {}
        self._staged: dict[int, list[tuple[Spot, Finding]]] = {}
        """For each thread, the findings of its programs, which may have to run again."""
        self._marked: dict[int, list[tuple[uninitialized.Fresh, np.ndarray]]] = {}
        """For each thread, the uninitialized bytes that its programs stored to first."""
        self._wrapped: dict[int, set[int]] = {}
        """For each thread, those of its programs in which an integer wrapped around."""
        self._findings: dict[tuple[Spot, str], Finding] = {}
        self._broadcast = BroadcastStores()
        self._language_issues: dict[tuple[Any, ...], Issue] = {}
        """The issues that the language found."""
        self._records = None
        self._aborted = False

    def arg_callback(self, name: str, arg: Any) -> None:
        """Note an argument of the launch."""
        self._arguments[name] = arg
        for path, tensor in tensors_in(name, arg):
            info = TensorInfo.of(path, tensor)
            self._tensors[path] = info
            if self.initcheck and (fresh := uninitialized.fresh(info)) is not None:
                self._fresh[fresh.start] = fresh

    def grid_callback(self, grid: Program) -> None:
        """Analyze the kernel before it runs."""
        numbers = {name: int(arg) for name, arg in self._arguments.items() if _is_integer(arg)}
        self._context = Context(grid, numbers)
        self._given = Given(list(self._tensors.values()))
        self._analysis = Analysis((), True) if _checks_itself() else self._analyze(grid)
        self._spots = known_spots(self._analysis, self._tensors)
        for spot, known in self._spots.items():
            overflow = known.overflow
            if overflow is not None and overflow.overflow is not None:
                self._add(spot, self._of_witness("overflow", overflow, overflow.overflow))
            if not self.execute:
                for kind, verdict, witness in proved_violations(known):
                    self._add(spot, self._of_witness(kind, verdict, witness))
        self._abort()

    def issue_callback(self, issue: Issue) -> bool:
        """Keep an issue of a language that checks its kernels itself."""
        with self._lock:
            self._language_issues.setdefault((issue.call_path, issue.kind, issue.tensor), issue)
        return True

    def _analyze(self, grid: Program) -> Analysis:
        raise NotImplementedError

    def _analyzed(self, grid: Program, decide: bool) -> Analysis:
        """The language's own analysis; an empty, incomplete one if the language has none."""
        analyze = find_dsl(running_backend()).analyze
        if analyze is None:
            return Analysis((), False, f"backend {running_backend()!r} has no analysis")
        call = Call(self._kernel, self._arguments)
        return analyze(call, grid, list(self._tensors.values()), decide)

    def choose_programs(self, grid: Program) -> np.ndarray | None:
        """No programs, if `execute` is False."""
        return None if self.execute else np.empty(0, np.int64)

    def grid_idx_callback(self, grid_idx: Programs) -> None:
        """Commit the findings of this thread's last programs."""
        with self._lock:
            self._commit(threading.get_ident())
            self._marked.pop(threading.get_ident(), None)
            self._wrapped.pop(threading.get_ident(), None)
            self._abort()

    def discard_callback(self) -> None:
        """Discard the findings of programs that will run again."""
        with self._lock:
            self._staged.pop(threading.get_ident(), None)
            for fresh, marked in reversed(self._marked.pop(threading.get_ident(), [])):
                fresh.unmark(marked)

    def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
        """Check accesses before they are executed."""
        if _checks_itself():
            return OpCallbacks()
        if op_type is Compute:
            return OpCallbacks(after_callback=self._compute, only=wrapping.EXACT)
        if not issubclass(op_type, Access):
            return OpCallbacks()
        # Other ops than loads and stores may read and write, like an atomic.
        kind = next((kind for kind in (Load, Store) if issubclass(op_type, kind)), Atomic)
        return OpCallbacks(
            mask_overrider=functools.partial(self._access, _ACCESS[kind]),
            op_overrider=FAKE_OPS[kind] if self.fake_memory else None,
        )

    def register_for_loop_callback(self) -> ForLoopCallbacks:
        """No callbacks: accesses have their iterations."""
        return ForLoopCallbacks()

    def abort_callback(self) -> None:
        """Raise a SanitizerError for violations, with `abort_on_error`."""
        self._commit_all()
        self._abort()

    def post_run_callback(self, fn: Callable) -> None:
        """Does nothing."""

    def finalize(self) -> list[Any]:
        """A verdict for each access, and the issues."""
        if self._records is None:
            self._commit_all()
            issues = self._issues()
            self._records = [*self._verdicts(), *issues]
            self.issues += issues
        return self._records

    # --- accesses of a running kernel ---

    def _access(self, access: str, accessed: Accessed, operation: str = "", **_: Any) -> Mask:
        """The mask of an access without the elements that must not be accessed."""
        path, columns = kernel_columns(self._kernel)
        spot = path, columns, access
        known = self._spots.get(spot, Known())
        self._seen[spot] = known.tensors
        mask, found = accessed.mask, []
        tensors = [self._tensors[name] for name in known.tensors]
        if not known.proved:
            mask, found = check(accessed, tensors, self._given)
        broadcast = [tensor for tensor in tensors if access == "store" and is_broadcast(tensor)]
        if broadcast or self._fresh:
            block = Block(accessed.pointers, mask, accessed.width)
            use = "store" if operation == "xchg" else access  # its result need not be used
            with self._lock:
                found += [w for tensor in broadcast if (w := self._stored_twice(spot, block, tensor))]
                found += [
                    w for fresh in self._fresh.values() if (w := self._never_written(use, block, fresh))
                ]
        if found:
            self._stage(spot, accessed, found)
        return mask

    def _compute(self, name: str, operands: Any, result: Any, **_: Any) -> None:
        """Note the programs in which an integer wrapped around."""
        wrapped = wrapping.wrapped_lanes(name, operands, result)
        if wrapped is not None:
            program_ids = here().programs.order.all()
            with self._lock:
                now = program_ids if len(wrapped) == 1 else program_ids[wrapped]
                self._wrapped.setdefault(threading.get_ident(), set()).update(now.tolist())

    def _stage(self, spot: Spot, accessed: Accessed, found: list[Violation]) -> None:
        now = here()
        program_ids, active = now.programs.order.all(), now.programs.active
        for violation in found:
            lanes = (
                np.flatnonzero(active) if violation.lanes is None and active is not None else violation.lanes
            )
            programs = program_ids if lanes is None else program_ids[lanes]
            finding = Finding(
                violation=violation,
                program_id=int(programs[0]),
                width=accessed.width,
                iterations=now.iterations,
                masked=accessed.mask is not None,
                elements=violation.elements * (len(programs) if violation.lanes is None else 1),
                programs=programs,
            )
            with self._lock:
                if self._is_due_to_overflow(spot, finding):
                    finding.violation = dataclasses.replace(violation, kind="overflow")
                self._staged.setdefault(threading.get_ident(), []).append((spot, finding))

    def _is_due_to_overflow(self, spot: Spot, finding: Finding) -> bool:
        """Whether an address is out of bounds because an integer in it wrapped around."""
        if finding.violation.kind != "out of bounds" or not self._spots.get(spot, Known()).may_wrap:
            return False
        return finding.program_id in self._wrapped.get(threading.get_ident(), ())

    def _stored_twice(self, spot: Spot, block: Block, tensor: TensorInfo) -> Violation | None:
        programs = here().programs
        program_ids = programs.order.all()
        if len(block.keep) == 1 and programs.active is not None:
            program_ids = program_ids[programs.active]
        return self._broadcast.check((spot, tensor.name), block, tensor, program_ids)

    def _never_written(self, access: str, block: Block, fresh: uninitialized.Fresh) -> Violation | None:
        found = None
        if access != "store":
            bad = fresh.unwritten(block.addresses, block.width) & block.keep
            if bad.any():
                owners = [tensor for tensor in self._tensors.values() if tensor.storage[0] == fresh.start]
                found = of_nearest(block.violation("uninitialized", bad, None), owners)
        if access != "load":
            marked = fresh.mark(block.addresses[block.keep], block.width)
            self._marked.setdefault(threading.get_ident(), []).append((fresh, marked))
        return found

    # --- results ---

    def _commit_all(self) -> None:
        with self._lock:
            for thread in list(self._staged):
                self._commit(thread)

    def _commit(self, thread: int) -> None:
        for spot, finding in self._staged.pop(thread, ()):
            self._add(spot, finding)

    def _add(self, spot: Spot, finding: Finding) -> None:
        key = spot, finding.violation.kind
        if (spot, "overflow") in self._findings and finding.violation.kind == "out of bounds":
            return  # the overflow is reported instead of its consequence
        before = self._findings.get(key)
        self._findings[key] = finding if before is None else before.merge(finding)

    def _issues(self) -> list[Issue]:
        found = [
            issue_of(finding, spot, self._spots.get(spot, Known()), self._context)
            for (spot, _), finding in self._findings.items()
        ]
        found += self._language_issues.values()
        if not self.execute:
            violation = {spot for spot, _ in self._findings}
            found += [
                undecided(spot, known, self._reason(known), self._context)
                for spot, known in self._spots.items()
                if not known.proved and spot not in violation
            ]
            if not self._analysis.complete:
                line = self._kernel.__code__.co_firstlineno
                kernel = Site(self._kernel.__code__.co_filename, line, self._kernel.__name__)
                spot = (kernel,), (), "access"
                found.append(undecided(spot, Known(), self._analysis.reason, self._context))
        return sorted(found, key=lambda issue: [(site.file, site.line) for site in issue.call_path])

    def _reason(self, known: Known) -> str:
        return next((v.reason for v in known.verdicts if v.reason), self._analysis.reason)

    def _abort(self) -> None:
        if self.abort_on_error and (self._findings or self._language_issues) and not self._aborted:
            issues = [issue for issue in self._issues() if issue.verdict == "violation"]
            if not issues:
                return
            self._aborted = True
            where = f"{issues[0].call_path[-1].file}:{issues[0].call_path[-1].line}"
            more = f" (and {len(issues) - 1} more)" if len(issues) > 1 else ""
            text = f"{where}: kernel {self._kernel.__name__}: {issues[0].kind}: {issues[0].message}{more}"
            raise SanitizerError(text, issues)

    def _of_witness(self, kind: str, verdict: AccessVerdict, witness: Witness) -> Finding:
        program_id = linear_program_id(witness.program, self._context.grid)
        violation = Violation(
            kind=kind,
            lane=0,
            address=witness.address,
            tensor=self._tensors.get(witness.tensor),
            elements=1,
            lanes=None,
        )
        return Finding(
            violation=violation,
            program_id=program_id,
            width=verdict.width,
            iterations=witness.iterations,
            masked=verdict.masked,
            elements=1,
            programs=np.array([program_id]),
        )

    def _verdicts(self) -> list[Verdict]:
        all_programs = Programs.all_of(self._context.grid)
        found = []
        for spot in dict.fromkeys((*self._spots, *self._seen)):
            known = self._spots.get(spot, Known())
            verdict, proof = "ok", "proved"
            if any((spot, kind) in self._findings for kind in KINDS):
                verdict, proof = "violation", ""
            elif not known.proved and self.execute:
                proof = "checked"
            elif not known.proved:
                verdict, proof = "undecided", self._reason(known)
            found.append(
                Verdict(
                    programs=all_programs,
                    call_path=spot[0],
                    access=spot[2],
                    tensor=", ".join(known.tensors),
                    verdict=verdict,
                    proof=proof,
                    expression=known.expression,
                )
            )
        return found


KINDS = (
    "out of bounds",
    "overflow",
    "null pointer",
    "misaligned",
    "foreign tensor",
    "broadcast store",
    "uninitialized",
)
"""The kinds of issues."""


def _checks_itself() -> bool:
    """Whether the language of the launch checks every access itself (see `Client.issue_callback`)."""
    return find_dsl(running_backend()).checks_itself


def _is_integer(arg: Any) -> bool:
    return isinstance(arg, int | np.integer) and not isinstance(arg, bool)


class SymbolicSanitizer(Sanitizer):
    """Proves accesses for all programs at once, and checks the others while the kernel runs."""

    def _analyze(self, grid: Program) -> Analysis:
        return self._analyzed(grid, decide=True)


class ConcreteSanitizer(Sanitizer):
    """Checks every access while the kernel runs, and proves nothing."""

    def _analyze(self, grid: Program) -> Analysis:
        return self._analyzed(grid, decide=False)


class NoSanitizer(Sanitizer):
    """Does nothing, for programs that always construct a sanitizer."""

    finds_issues: ClassVar[bool] = False

    def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
        """No callbacks: no op is checked."""
        return OpCallbacks()

    def issue_callback(self, issue: Issue) -> bool:
        """Does not keep the issue."""
        return False

    def choose_programs(self, grid: Program) -> np.ndarray | None:
        """All of them."""
        return None

    def finalize(self) -> list[Any]:
        """No records."""
        return []

    def _analyze(self, grid: Program) -> Analysis:
        return Analysis((), True)
