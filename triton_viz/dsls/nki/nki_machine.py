"""The machine: runs the programs of a launch one after the other, and tracks their position in the kernel."""

import linecache
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from triton_viz.core.call_path import kernel_call_path
from triton_viz.core.data import Issue, Program, Site
from triton_viz.core.records.columns import Numbers, Programs
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.dsls.base import Here
from triton_viz.dsls.nki import hardware
from triton_viz.dsls.nki.ledger import Ledger
from triton_viz.dsls.running import Running
from triton_viz.errors import AccessError, HardwareError, KernelError

if TYPE_CHECKING:
    from triton_viz.dsls.nki.storage import Storage
    from triton_viz.dsls.nki.tensor import Tensor

_ASSIGNED = re.compile(r"\s*([A-Za-z_]\w*)\s*(?::[^=]+)?=[^=]")
running = Running["Machine"](
    "nki.language and nki.isa work inside a kernel only: call it through @nki.jit, or through "
    "triton_viz.trace(backend='nki')"
)
current, is_running = running.current, running.is_running


class Launched:
    """The state that all programs of a launch share: tensors in HBM, totals, and the callback for issues."""

    def __init__(self, kernel: Callable, grid: Program, axes: int, on_issue: Callable[[Issue], bool]):
        self.kernel = kernel
        """The kernel's Python function, unchanged."""
        self.grid, self.axes = grid, axes
        self.on_issue = on_issue
        """Called with a violation; True if a client keeps it, so that the program continues."""
        self.ledger = Ledger(hardware.target())
        self.adopted: list[TensorInfo] = []
        """Tensors in HBM that the kernel allocated."""
        self.shared: list[Storage] = []
        """The shared tensors among them, in the order of their allocation."""
        self.private: list[Storage] = []
        """The private tensors of programs, which have to exist until the launch ends."""
        self.names: set[str] = set()
        self.events: list[list[Any]] = []
        """The records of the buffers of each program."""

    def unique(self, name: str) -> str:
        """A name that is unique among the tensors of the launch."""
        found, number = name, 2
        while found in self.names:
            found, number = f"{name}_{number}", number + 1
        self.names.add(found)
        return found


class Machine:
    """Runs one program at a time."""

    bytes_per_lane = 1
    ordered = False

    def __init__(self, launched: Launched, run: Callable[[], Any], builder: Any):
        self.launched = launched
        self._run = run
        self.builder = builder
        self.programs = Programs(launched.grid, Numbers(1))
        self.program: Program = (0, 0, 0)
        self.loops: list[list[int]] = []
        """For each loop around the current statement: its line and iteration."""
        self.before_loop, self.loop_iteration, self.after_loop = running.loop_callbacks
        self.on_ordered: Callable[[], None] = lambda: None
        self.results: list[Any] = []
        """The kernel's result for each program."""
        self.registers: dict[str, np.ndarray] = {}
        """The accumulators of engines, which persist between instructions."""
        self.random = np.random.default_rng(0)
        self._allocated_shared = 0
        self._latest: tuple[str, str, tuple[Tensor, ...]] = "", "", ()
        """The name and engine of the latest instruction, and the tensors that it names as written."""

    # --- the interface of the executor ---

    def enter(self) -> None:
        """Make this the machine of the current thread."""
        running.enter(self)

    def begin(self, order: np.ndarray) -> Programs:
        """Prepare for the program with this linear id."""
        self.programs = Programs(self.launched.grid, Numbers(1, int(order[0])))
        self.program = self.programs.only()
        self.loops = []
        self.registers = {}
        self._allocated_shared = 0
        self.launched.ledger.begin()
        return self.programs

    def run(self) -> None:
        """Run the kernel for the program."""
        try:
            with np.errstate(all="ignore"):
                self.results.append(self._run())
            self._check_capacity()
        except Exception as error:
            error.program = self.program  # type: ignore[attr-defined] - for the message
            raise

    def undo(self) -> None:
        """Does nothing: no program runs again."""

    def may_wait(self, others_may_help: bool) -> None:
        """Does nothing: programs do not wait for each other."""

    def here(self) -> Here:
        """The kernel, the programs and the iterations of the op that is being executed."""
        return Here(self.launched.kernel, self.programs, self.iterations)

    @property
    def iterations(self) -> tuple[tuple[int, int], ...]:
        """For each loop around the current statement: its line and iteration."""
        return tuple((line, index) for line, index in self.loops)

    # --- source positions ---

    def path(self) -> tuple[Site, ...]:
        """The lines of the kernel and its functions that are being executed, the kernel's first."""
        return kernel_call_path(self.launched.kernel)

    def named_here(self, path: tuple[Site, ...], otherwise: str) -> str:
        """The variable that the current line assigns to."""
        if path:
            text = linecache.getline(path[-1].file, path[-1].line)
            if match := _ASSIGNED.match(text):
                return match[1]
        return otherwise

    # --- instructions ---

    def instruction(
        self,
        name: str,
        engine: str | None = None,
        reads: "tuple[Tensor, ...]" = (),
        writes: "tuple[Tensor, ...]" = (),
        elements: int = 0,
        flops: int = 0,
        slow: int = 1,
        mask: np.ndarray | None = None,
    ) -> str:
        """Note that an engine executes an instruction. Returns the engine.

        Only the elements of HBM where the mask is true count as accessed.
        """
        engine = self._engine(name, engine, (*reads, *writes))
        ledger = self.launched.ledger
        ledger.tick += 1
        for tensor in writes:
            if tensor.whole and not tensor.storage.used:
                tensor.storage.made = ledger.tick
        for tensor in (*reads, *writes):
            tensor.storage.use(ledger.tick)
        kept = 1.0 if mask is None else float(mask.mean())

        def touched(tensor: "Tensor") -> tuple[str, int]:
            count = tensor.size if tensor.memory != "HBM" else round(tensor.size * kept)
            return tensor.memory, count * tensor.itemsize

        read, written = [touched(t) for t in reads], [touched(t) for t in writes]
        for memory, count in read:
            ledger.read[memory] += count
        for memory, count in written:
            ledger.written[memory] += count
        totals = ledger.engines[engine]
        totals.instructions += 1
        totals.flops += flops
        moved = max((count for _, count in (*read, *written)), default=0)
        busy = hardware.seconds(engine, ledger.target, elements, moved, slow)
        totals.seconds += busy
        self.builder.instruction(name, engine, ledger.tick, reads, writes, busy)
        self._latest = name, engine, writes
        return engine

    # --- results that are assigned ---

    def writes_directly(self, value: Any, part: "Tensor") -> bool:
        """Whether the latest instruction could write its result, this value, to a part of a tensor
        directly."""
        if not self._is_latest_result(value) or value.size != part.size:
            return False
        # The tensor engine writes PSUM only, DMA engines do not write PSUM; other engines write both.
        engine = self._latest[1]
        return value.memory == part.memory or (part.memory == "PSUM" and engine not in ("tensor", "dma"))

    def is_new_product(self, value: Any, total: "Tensor") -> bool:
        """Whether a value is the latest product, which the tensor engine can add to this tensor in PSUM."""
        return (
            self._is_latest_result(value)
            and self._latest[0] == "nc_matmul"
            and value.memory == total.memory == "PSUM"
            and value.size == total.size
            and value.storage.masked is None
            and total.dtype == np.float32
        )

    def redirect(self, value: "Tensor", part: "Tensor") -> None:
        """Record that the latest instruction wrote its result to a part of a tensor, without a buffer for
        it."""
        ledger = self.launched.ledger
        named = any(tensor.storage is value.storage for tensor in self._latest[2])
        if not named and ledger.buffers and ledger.buffers[-1] is value.storage:
            ledger.buffers.pop()
        part.storage.use(ledger.tick)
        part.storage.assigned.append(ledger.tick)

    def _is_latest_result(self, value: Any) -> bool:
        storage = getattr(value, "storage", None)
        return storage is not None and value.whole and storage.made == self.launched.ledger.tick > 0

    def use(self, tensor: "Tensor") -> None:
        """Note a use of a tensor, which extends its lifetime."""
        tensor.storage.use(self.launched.ledger.tick)

    def moved(self, source: str, destination: str, count: int) -> None:
        """Add bytes to the transfers between two memories."""
        self.launched.ledger.moved[source, destination] += count

    def _engine(self, name: str, asked: str | None, tensors: "tuple[Tensor, ...]") -> str:
        able = hardware.RUNS_ON.get(name, ("vector",))
        in_psum = any(tensor.memory == "PSUM" for tensor in tensors)
        if asked is None:
            return next((engine for engine in able if not (engine == "gpsimd" and in_psum)), able[0])
        if asked not in able:
            runs = " or ".join(able)
            self.report(
                "engine",
                f"{name} cannot run on the {asked} engine: it runs on {runs}",
                suggestion=f"leave engine= out, or give nki.isa.engine.{able[0]}",
            )
            return able[0]
        if asked == "gpsimd" and in_psum:
            which = next(tensor.name for tensor in tensors if tensor.memory == "PSUM")
            self.report(
                "engine",
                f"{name} on the gpsimd engine touches {which}, which is in PSUM: that engine has no access "
                "to it",
                tensor=which,
                suggestion="copy it to SBUF first (nisa.tensor_copy), or take the vector engine",
            )
        return asked

    # --- allocation ---

    def on_chip(self, storage: "Storage") -> None:
        """Add a buffer in SBUF or PSUM, and report it if it does not fit."""
        ledger = self.launched.ledger
        storage.path, storage.iterations = self.path(), self.iterations
        storage.name = storage.name or self.named_here(storage.path, "tile")
        ledger.allocated(storage)
        shape, memory = storage.array.shape, storage.memory
        partitions = shape[storage.partition_axis] if shape else 1
        if partitions > hardware.PARTITIONS:
            self.report(
                "partition size",
                f"{storage.name} of shape {shape} has {partitions} partitions, and {memory} has "
                f"{hardware.PARTITIONS}: the partition axis (axis {storage.partition_axis}) is at most "
                f"{hardware.PARTITIONS} long",
                tensor=storage.name,
                suggestion=f"take tiles of {hardware.PARTITIONS} rows in a loop (nl.tile_size.pmax)",
            )
        limit = ledger.limit(memory)
        if storage.bytes_per_partition > limit:
            self.report(
                "over capacity",
                f"{storage.name} of shape {shape} and type {storage.array.dtype.name} takes "
                f"{storage.bytes_per_partition:,} bytes of each partition, and {memory} has {limit:,}",
                tensor=storage.name,
                suggestion="take smaller tiles along the free axes",
            )

    def take_shared(self, shape: tuple[int, ...], dtype: np.dtype) -> "Storage | None":
        """The next shared tensor, if an earlier program has allocated it."""
        position = self._allocated_shared
        self._allocated_shared += 1
        if position >= len(self.launched.shared):
            return None
        found = self.launched.shared[position]
        if (found.array.shape, found.array.dtype) != (shape, dtype):
            raise KernelError(
                f"this program allocates a {dtype.name}{list(shape)} in shared HBM where program (0, 0, 0) "
                f"allocated a {found.array.dtype.name}{list(found.array.shape)}: all programs share it"
            )
        return found

    def _check_capacity(self) -> None:
        """Report buffers that do not fit at the same time. Called at the end, when all last uses are
        known."""
        ledger = self.launched.ledger
        for memory in ("SBUF", "PSUM"):
            peak, culprit, live = ledger.most_in_use(memory)
            if culprit is None or peak <= ledger.limit(memory):
                continue
            if any(one.bytes_per_partition > ledger.limit(memory) for one in live):
                continue  # reported at its allocation
            largest = sorted(live, key=lambda one: -one.bytes_per_partition)[:4]
            others = ", ".join(
                f"{one.name} ({one.bytes_per_partition:,}, line {one.path[-1].line})"
                for one in largest
                if one.path
            )
            total = sum(one.bytes_per_partition for one in live)
            self.report(
                "over capacity",
                f"with {culprit.name} there are {len(live)} buffers in use at once, {total:,} bytes of each "
                f"partition, and {memory} has {ledger.limit(memory):,}. The largest: {others}",
                tensor=culprit.name,
                suggestion="use buffers sooner after they are filled, or take smaller tiles",
                path=culprit.path,
                iterations=culprit.iterations,
            )

    # --- violations ---

    def report(
        self,
        kind: str,
        message: str,
        *,
        suggestion: str = "",
        path: tuple[Site, ...] | None = None,
        iterations: tuple[tuple[int, int], ...] | None = None,
        error: type[KernelError] = HardwareError,
        **fields: Any,
    ) -> None:
        """Report a violation to the clients. If no client keeps it, raise `error`."""
        issue = Issue(
            programs=self.programs,
            call_path=self.path() if path is None else path,
            iterations=self.iterations if iterations is None else iterations,
            kind=kind,
            verdict="violation",
            message=message,
            suggestion=suggestion,
            **fields,
        )
        if self.launched.on_issue(issue):
            return
        raised = error(
            f"{message}. {suggestion[:1].upper()}{suggestion[1:]}." if suggestion else f"{message}."
        )
        raised.site = issue.call_path[-1] if issue.call_path else None  # type: ignore[attr-defined]
        raise raised

    def report_outside(self, tensor: "Tensor", bad: np.ndarray, mask: np.ndarray | None) -> None:
        """Report a read or write outside of a tensor."""
        assert tensor.picked is not None
        position = tuple(int(i) for i in np.argwhere(bad)[0])
        index = tensor.picked.at(position)
        shape = tensor.array.shape
        axis = next(a for a, (i, n) in enumerate(zip(index, shape, strict=True)) if not 0 <= i < n)
        strides = [stride // tensor.itemsize for stride in tensor.array.strides]
        offset = sum(i * stride for i, stride in zip(index, strides, strict=True))
        part = "" if tensor.array is tensor.storage.array else "this part of "
        count = int(bad.sum())
        many = f", and {count - 1:,} more elements" if count > 1 else ""
        where = f"{'mask is true there' if mask is not None else 'there is no mask'}"
        limit = f"{shape[axis]}" if index[axis] >= 0 else "0 (indices do not count from the end)"
        self.report(
            "out of bounds",
            f"{part}{tensor.name}, a tensor of shape {shape} in {tensor.memory}, is accessed at index {index}"
            f"{many}: {index[axis]} is {'not below' if index[axis] >= 0 else 'below'} {limit} along axis "
            f"{axis}, and {where}",
            suggestion=(
                "let the mask leave these elements out"
                if mask is not None
                else "give mask=, or end the slice earlier"
            ),
            error=AccessError,
            tensor=tensor.name,
            index=index,
            offset=offset,
            past_end=tensor.itemsize * (index[axis] - shape[axis] + 1 if index[axis] >= 0 else index[axis]),
            mask=None if mask is None else True,
        )

    def report_undefined(self, tensor: "Tensor", undefined: np.ndarray, used: str) -> None:
        """Report a use of undefined elements."""
        position = tuple(int(i) for i in np.argwhere(undefined)[0])
        count = int(undefined.sum())
        self.report(
            "undefined",
            f"{count:,} of the {undefined.size:,} elements of {tensor.name} are undefined where it is used "
            f"{used}, the first at {position}: nothing was written there, or a mask left them out",
            suggestion="give this op the load's mask, or fill the tile first (nl.zeros, nisa.memset)",
            tensor=tensor.name,
            index=position,
        )
