"""The profiler's report: plain data, in a launch's records and as JSON.

Bytes are summed over all programs of the grid. *Distinct* bytes count each element once, even if it is
accessed several times.
"""

import msgspec

from triton_viz.core.data import Program, Record, Site


class SiteTraffic(msgspec.Struct, frozen=True, kw_only=True):
    """Accesses of one line to one tensor."""

    site: tuple[Site, ...]
    """The kernel's line first, then those of the functions it called."""
    kind: str
    """load, store or atomic."""
    tensor: str
    dtype: str
    block: tuple[int, ...]
    """The shape of the block that one program accesses at a time."""
    steps: tuple[int, ...] | None
    """The step from one element of the block to the next along each axis, in elements; None if it varies."""
    elements: int
    """The number of accessed elements."""
    masked_off: int
    bytes: int
    error: float
    """The relative error of `bytes` at 95 % confidence; 0 if all programs ran."""
    mask_waste: float
    """The share of the blocks' elements that was masked off."""
    most_used: tuple[int, ...]
    """Along each axis, the most elements that any program used."""
    requests: int
    """Accesses of 32 elements, one for each thread of a warp, with at least one element that is not
    masked."""
    sectors: int
    """The sectors of 32 bytes that these requests needed."""
    sectors_per_request: float
    coalescing: float
    """The sectors needed if elements were packed, over those that were: 1 is best."""
    distinct_bytes: int
    distinct_in_programs: int
    """The distinct bytes of each program, summed."""
    repeats_in_program: float
    """How often a program accesses an element, on average: 1 is best."""
    repeats_across: float
    """The number of programs that access an element, on average."""
    exact: bool
    """Whether the distinct bytes were counted. If not, they are an estimate."""


class TensorTraffic(msgspec.Struct, frozen=True, kw_only=True):
    """Accesses of the whole kernel to one tensor."""

    tensor: str
    shape: tuple[int, ...]
    dtype: str
    loaded: int
    stored: int
    atomics: int
    """In bytes, like `loaded` and `stored`."""
    distinct_loaded: int
    distinct_stored: int
    """Distinct bytes that stores and atomics wrote."""
    repeats_in_program: float
    """How often a program loads an element, on average over all lines."""
    repeats_across: float
    """The number of programs that load an element, on average."""
    exact: bool


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """The arithmetic of one line."""

    site: tuple[Site, ...]
    unit: str
    """dot for products of tiles, which run on matrix units of a GPU, or vector."""
    precision: str
    flops: int


class Loop(msgspec.Struct, frozen=True, kw_only=True):
    """A loop of the kernel."""

    file: str
    line: int
    kind: str
    """range, static_range or while."""
    unrolled: bool
    trips_least: float
    """Iterations each time a program enters it, of the program with the fewest."""
    trips_most: float
    trips_total: int
    """The iterations of all programs together."""


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """How evenly bytes or flops are distributed over the programs."""

    of: str
    """bytes or flops."""
    least: int
    median: float
    most: int
    mean: float
    imbalance: float
    """The maximum divided by the mean: 1 is best."""
    heaviest: tuple[Program, ...]
    """The programs with the most, at most three."""
    lightest: Program


class Contention(msgspec.Struct, frozen=True, kw_only=True):
    """How often atomics of a tensor update one element."""

    tensor: str
    updates: int
    elements: int
    """The number of distinct elements that were updated."""
    hottest: tuple[int, ...] | int
    """The element with the most updates: its index, or its distance from the first if it has no index."""
    hits: int
    """The number of updates of that element."""
    mean: float
    """The number of updates per element, on average."""


class Roofline(msgspec.Struct, frozen=True, kw_only=True):
    """Lower bounds of the run time on a device."""

    device: str
    flops: int
    least_bytes: int
    """The bytes if every element is transferred once, and then stays in a cache."""
    most_bytes: int
    """The bytes if every sector of every request is transferred."""
    memory_bytes: int
    """The likely bytes: `least` if they fit the device's cache, otherwise each program's distinct bytes,
    summed."""
    intensity: float
    """Flops per byte."""
    ridge: float
    """The intensity above which the kernel is compute-bound."""
    bound: str
    """memory or compute."""
    seconds: float
    """A lower bound of the run time."""
    attainable: float
    """Flops per second at that time."""


class CompiledLine(msgspec.Struct, frozen=True, kw_only=True):
    """Compiled instructions of one line of source."""

    file: str
    line: int
    instructions: tuple[str, ...]
    """The target's instructions, in the assembly language that `Compiled.language` names."""
    ttgir: tuple[str, ...]
    widths: tuple[int, ...]
    """The bytes that one thread moves with each of its accesses to global memory."""


class Compiled(msgspec.Struct, frozen=True, kw_only=True):
    """The compiled kernel, for a GPU that need not be present."""

    target: str
    """The target, such as cuda:90 or hip:gfx942."""
    language: str = "ptx"
    """The assembly language of the target: ptx or amdgcn."""
    error: str = ""
    """Why the kernel does not compile for the target; empty if it does."""
    registers: int | None
    """Registers of each thread; None if the compiler does not report them."""
    spills: int | None
    """Bytes for each thread that did not fit into registers."""
    shared: int | None
    """Bytes of shared memory for each program."""
    warps: int | None
    lines: tuple[CompiledLine, ...]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A suggested change."""

    kind: str
    """mask, coalescing, alignment, reread, sharing, overwrite, loop, balance, contention, grid, registers,
    or vector width."""
    message: str
    """The observation."""
    change: str
    """The suggested change."""
    cost: float
    """An estimate of the share of the kernel's time that the change saves, for sorting."""
    file: str = ""
    line: int = 0
    tensor: str = ""


class KernelReport(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of one kernel."""

    kernel: str
    file: str
    line: int
    grid: Program
    programs: int
    ran: int
    """The number of programs that ran; fewer than `programs` if they were sampled."""
    skipped: tuple[str, ...]
    """loads or stores, if these were counted but not executed: results that depend on loads are invalid."""
    loaded: int
    stored: int
    loaded_error: float
    stored_error: float
    flops: int
    flops_error: float
    integer_ops: int
    sites: tuple[SiteTraffic, ...]
    tensors: tuple[TensorTraffic, ...]
    work: tuple[Work, ...]
    loops: tuple[Loop, ...]
    balance: tuple[Balance, ...]
    contention: tuple[Contention, ...]
    roofline: Roofline
    compiled: Compiled | None
    findings: tuple[Finding, ...]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All profiled launches, oldest first."""

    launches: tuple[KernelReport, ...]

    def to_json(self) -> str:
        """As JSON, each field by its name."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()

    @classmethod
    def from_json(cls, text: str) -> "Report":
        """Parse the output of `to_json`."""
        return msgspec.json.decode(text, type=cls)


class SiteProfile(Record, frozen=True, tag=True, kw_only=True):
    """Profile of one line and one tensor, over all programs."""

    traffic: SiteTraffic


class KernelProfile(Record, frozen=True, tag=True, kw_only=True):
    """Profile of a launch. Its lines are in records of their own."""

    report: KernelReport


class Advice(Record, frozen=True, tag=True, kw_only=True):
    """A change that would make the kernel faster."""

    finding: Finding
