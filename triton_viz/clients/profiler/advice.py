"""Findings: suggested changes to a kernel, derived from its report. Each rule detects one problem."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from triton_viz.clients.profiler.blocks import SECTOR
from triton_viz.clients.profiler.devices import Device
from triton_viz.clients.profiler.kernel_profile import Finding, KernelReport, SiteTraffic

_SMALL_LOOP = 16
"""The most iterations of a loop that is worth unrolling."""


class _Launch:
    """A report, and the names of arguments and constants by value."""

    def __init__(self, report: KernelReport, kernel: Callable, arguments: dict[str, Any], device: Device):
        self.report, self.device = report, device
        parameters = inspect.signature(kernel).parameters
        constants, sizes = {}, {}
        for name, value in arguments.items():
            value = getattr(value, "value", value)
            if isinstance(value, int) and not isinstance(value, bool) and name in parameters:
                known = constants if "constexpr" in str(parameters[name].annotation) else sizes
                known[name] = value
        self._constants, self._sizes = constants, sizes
        self.bytes = sum(site.bytes for site in report.sites) or 1

    def block(self, size: int) -> str:
        """`BLOCK=1024` if a constant has this value, else `a block of 1024`."""
        return next((f"{n}={v}" for n, v in self._constants.items() if v == size), f"a block of {size}")

    def size(self, size: int) -> str:
        """`585 columns (n)` if an argument has this value."""
        return next((f"{n}={v}" for n, v in self._sizes.items() if v == size), f"{size} elements")

    def share(self, site: SiteTraffic) -> float:
        """A site's share of all traffic."""
        return site.bytes / self.bytes


def find(
    report: KernelReport, kernel: Callable, arguments: dict[str, Any], device: Device
) -> tuple[Finding, ...]:
    """Suggested changes, the most worthwhile first."""
    launch = _Launch(report, kernel, arguments, device)
    found = [finding for rule in _RULES for finding in rule(launch)]
    return tuple(sorted(found, key=lambda finding: -finding.cost))


def _at(site: SiteTraffic) -> dict[str, Any]:
    where = site.site[0] if site.site else None
    return {
        "file": where.file if where else "",
        "line": where.line if where else 0,
        "tensor": site.tensor,
    }


def _mask(launch: _Launch) -> Iterator[Finding]:
    for site in launch.report.sites:
        if site.mask_waste < 0.2 or not site.elements:
            continue
        axis = min(range(len(site.block)), key=lambda a: site.most_used[a] / site.block[a], default=None)
        message = f"the mask wastes {site.mask_waste:.0%} of the elements of this {site.kind}"
        change = "some programs have little to do: give each as much as the others, or launch fewer"
        if axis is not None and site.most_used[axis] < site.block[axis]:
            block, used = site.block[axis], site.most_used[axis]
            message += f": {launch.block(block)} for {launch.size(used)}"
            best = _best_block(used, block)
            rounds = -(-used // best)
            if best == block:
                change = "use a shorter axis, or a mask that leaves out fewer elements"
            elif rounds > 1:
                change = f"loop over blocks of {best}: {rounds} of them are {rounds * best} elements"
            else:
                change = f"a block of {best} is enough"
        yield Finding(
            kind="mask",
            message=message,
            change=change,
            cost=site.mask_waste * launch.share(site),
            **_at(site),
        )


def _best_block(used: int, block: int) -> int:
    """The largest power of two that divides the used size with little waste."""
    best, waste = block, 1.0
    size = 1 << (max(used, 1) - 1).bit_length()
    while size >= 32:
        now = 1 - used / (-(-used // size) * size)
        if now < waste - 0.05:
            best, waste = size, now
        size //= 2
    return min(best, block)


def _coalescing(launch: _Launch) -> Iterator[Finding]:
    for site in launch.report.sites:
        if site.coalescing > 0.9 or site.requests == 0:
            continue
        worse = 1 / site.coalescing
        steps = [abs(s) for s, n in zip(site.steps or (), site.block, strict=False) if s and n > 1]
        nearest = min(steps, default=0)
        message = (
            f"each request of 32 elements of this {site.kind} needs {site.sectors_per_request:.1f} sectors "
            f"of {SECTOR} bytes, {worse:.1f} times as many as if they were packed"
        )
        kind = "coalescing"
        if nearest == 1:
            if worse < 1.15:
                continue
            kind = "alignment"
            change = (
                f"blocks do not begin at multiples of {SECTOR} bytes: pad the rows of {site.tensor} to such "
                "a multiple, or let blocks be wider"
            )
        elif nearest:
            change = (
                f"neighbours in the block are {nearest} elements apart in {site.tensor}: let the axis along "
                "which it is contiguous be an axis of the block (load a tile and tl.trans it), or store "
                "the tensor transposed"
            )
        else:
            change = (
                "addresses are irregular: sort the indices they depend on, or let each program take whole "
                f"rows of {site.tensor}"
            )
        cost = (1 - site.coalescing) * launch.share(site)
        yield Finding(kind=kind, message=message, change=change, cost=cost, **_at(site))


def _reread(launch: _Launch) -> Iterator[Finding]:
    alone = set()
    for site in launch.report.sites:
        if site.kind == "load" and site.repeats_in_program > 1.5:
            alone.add(site.tensor)
            yield Finding(
                kind="reread",
                message=f"each program loads an element {site.repeats_in_program:.1f} times here",
                change="load it before the loop and keep it, or let the block have no axis along which "
                "nothing changes: broadcast after loading",
                cost=(1 - 1 / site.repeats_in_program) * launch.share(site),
                **_at(site),
            )
    for tensor in launch.report.tensors:
        if tensor.repeats_in_program > 1.5 and tensor.tensor not in alone:
            lines = sorted({_at(s)["line"] for s in launch.report.sites if s.tensor == tensor.tensor})
            yield Finding(
                kind="reread",
                message=f"each program loads an element of {tensor.tensor} "
                f"{tensor.repeats_in_program:.1f} times, in lines {', '.join(map(str, lines))}",
                change="keep what was loaded first: if a row fits a block, one pass is enough",
                cost=(1 - 1 / tensor.repeats_in_program) * tensor.loaded / launch.bytes,
                tensor=tensor.tensor,
            )


def _sharing(launch: _Launch) -> Iterator[Finding]:
    for tensor in launch.report.tensors:
        if tensor.repeats_across < 4:
            continue
        share = tensor.loaded / launch.bytes
        fits = tensor.distinct_loaded <= launch.device.cache
        where = (
            f"it fits the {launch.device.name}'s cache of {launch.device.cache >> 20} MiB, so only the first "
            "load is from memory"
            if fits
            else f"it does not fit the {launch.device.name}'s cache"
        )
        if share < 0.05 and fits:
            continue
        yield Finding(
            kind="sharing",
            message=f"each element of {tensor.tensor} is loaded by {tensor.repeats_across:.1f} programs; "
            f"{where}",
            change="let each program do more rows or a larger tile for what it has loaded, and let programs "
            "that share it run next to each other (grouped order)",
            cost=(0.1 if fits else 1.0) * (1 - 1 / tensor.repeats_across) * share,
            tensor=tensor.tensor,
        )


def _overwrite(launch: _Launch) -> Iterator[Finding]:
    for site in launch.report.sites:
        if site.kind == "store" and site.repeats_in_program * site.repeats_across > 1.5:
            times = site.repeats_in_program * site.repeats_across
            yield Finding(
                kind="overwrite",
                message=f"each element of {site.tensor} is written {times:.1f} times here",
                change="store once, after the loop, and let one program only write each element",
                cost=(1 - 1 / times) * launch.share(site),
                **_at(site),
            )


def _loops(launch: _Launch) -> Iterator[Finding]:
    for loop in launch.report.loops:
        if loop.unrolled or loop.kind != "range" or not 1 < loop.trips_most <= _SMALL_LOOP:
            continue
        if loop.trips_least == loop.trips_most:
            yield Finding(
                kind="loop",
                message=f"this loop is not unrolled: every program runs {loop.trips_most:g} iterations",
                change="if that is known when the kernel is compiled, give it constant bounds and write "
                "static_range",
                cost=0.02,
                file=loop.file,
                line=loop.line,
            )


def _balance(launch: _Launch) -> Iterator[Finding]:
    for balance in launch.report.balance:
        if balance.imbalance < 1.5 or launch.report.programs < 2:
            continue
        heavy = ", ".join(str(program) for program in balance.heaviest)
        yield Finding(
            kind="balance",
            message=f"programs are uneven in {balance.of}: {balance.least:,} to {balance.most:,}, "
            f"median {balance.median:,.0f}; the most are of {heavy}",
            change="give heavy and light work to the same program (first with last), or split the heavy: "
            "with fewer programs than fit at once the heaviest one is what the launch waits for",
            cost=0.5 * (1 - 1 / balance.imbalance),
        )


def _contended(launch: _Launch) -> Iterator[Finding]:
    for contention in launch.report.contention:
        if contention.hits >= 32:
            yield Finding(
                kind="contention",
                message=f"{contention.hits:,} of {contention.updates:,} atomic updates of "
                f"{contention.tensor} hit the element {contention.hottest}; the mean is "
                f"{contention.mean:,.1f}",
                change="combine within a program first (tl.sum, tl.histogram), or give programs copies of "
                "their own and add these up at the end",
                cost=min(1.0, contention.hits / 1000),
                tensor=contention.tensor,
            )


def _grid(launch: _Launch) -> Iterator[Finding]:
    programs, processors = launch.report.programs, launch.device.processors
    if programs < processors and launch.report.roofline.most_bytes > 1 << 20:
        yield Finding(
            kind="grid",
            message=f"{programs} programs cannot fill the {processors} processors of the "
            f"{launch.device.name}",
            change="use smaller blocks, or split the inner axis over programs (split-K)",
            cost=1 - programs / processors,
        )


def _compiled(launch: _Launch) -> Iterator[Finding]:
    compiled = launch.report.compiled
    if compiled is None:
        return
    if compiled.spills:
        yield Finding(
            kind="registers",
            message=f"{compiled.spills} bytes for each thread do not fit into registers and are spilled",
            change="use smaller blocks, more warps, or fewer stages",
            cost=0.5,
        )
    widths = {(line.file, line.line): line.widths for line in compiled.lines}
    for site in launch.report.sites:
        where = site.site[-1] if site.site else None
        own = widths.get((where.file, where.line), ()) if where else ()
        packed = site.steps is not None and 1 in (abs(step) for step in site.steps)
        if own and packed and max(own) < 16 and site.bytes > 1 << 12:
            yield Finding(
                kind="vector width",
                message=f"a thread moves at most {max(own)} bytes at a time here, where it could move 16",
                change="tell the compiler which sizes and strides are multiples of 16, with "
                "tl.multiple_of, tl.max_contiguous or tl.assume",
                cost=0.2 * launch.share(site),
                **_at(site),
            )


_RULES: tuple[Callable[[_Launch], Iterator[Finding]], ...] = (
    _mask,
    _coalescing,
    _reread,
    _sharing,
    _overwrite,
    _loops,
    _balance,
    _contended,
    _grid,
    _compiled,
)
