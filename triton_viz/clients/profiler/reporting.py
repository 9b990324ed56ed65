"""Computes a launch's report from its totals."""

import ast
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from triton_viz.clients.profiler import sampling
from triton_viz.clients.profiler.advice import find
from triton_viz.clients.profiler.blocks import SECTOR
from triton_viz.clients.profiler.devices import Device, roofline
from triton_viz.clients.profiler.footprint import Footprint
from triton_viz.clients.profiler.kernel_profile import (
    Balance,
    Compiled,
    Contention,
    KernelReport,
    Loop,
    SiteTraffic,
    TensorTraffic,
    Work,
)
from triton_viz.clients.profiler.totals import LaunchTotals, LoopTotals, SiteTotals, merged_hits
from triton_viz.core.records.columns import Numbers, Programs
from triton_viz.core.records.tensor_info import TensorInfo


class Launched(msgspec.Struct):
    """The inputs of a report besides the totals."""

    kernel: Callable
    file: str
    line: int
    arguments: dict[str, Any]
    tensors: list[TensorInfo]
    skipped: tuple[str, ...]
    compiled: Compiled | None


def report_of(totals: LaunchTotals, launched: Launched, device: Device) -> KernelReport:
    """The report of a launch that has ended."""
    ran = int(np.count_nonzero(totals.ran))
    scale = totals.programs / ran if ran else 0.0
    totals.assign_masked_off()
    found = sorted(
        totals.sites.values(),
        key=lambda site: ([(s.file, s.line) for s in site.path], site.kind, site.tensor.name),
    )
    sites = tuple(_site(site, scale, ran, totals.programs) for site in found)
    tensors = _tensors(totals, found, scale, ran)
    work = tuple(
        Work(site=path, unit=unit, precision=precision, flops=round(flops * scale))
        for (path, unit, precision), flops in sorted(
            totals.work.items(), key=lambda item: ([(s.file, s.line) for s in item[0][0]], item[0][1:])
        )
        if flops
    )

    def total(numbers: np.ndarray) -> tuple[int, float]:
        of = numbers[totals.ran].astype(np.float64)
        error = sampling.error_of(float(of.sum()), float((of * of).sum()), ran, totals.programs)
        return round(int(numbers.sum()) * scale), error

    loaded, loaded_error = total(totals.loaded)
    stored, stored_error = total(totals.stored)
    flops, flops_error = total(totals.flops)
    distinct_written = {t.tensor: t.distinct_stored for t in tensors}
    each = sum(site.distinct_in_programs for site in sites if site.kind != "load")
    report = KernelReport(
        kernel=launched.kernel.__name__,
        file=launched.file,
        line=launched.line,
        grid=totals.grid,
        programs=totals.programs,
        ran=ran,
        skipped=launched.skipped,
        loaded=loaded,
        stored=stored,
        loaded_error=loaded_error,
        stored_error=stored_error,
        flops=flops,
        flops_error=flops_error,
        integer_ops=round(totals.integers * scale),
        sites=sites,
        tensors=tensors,
        work=work,
        loops=tuple(_loop(*item, scale) for item in sorted(totals.loops.items())),
        balance=tuple(
            _balance(of, numbers, totals)
            for of, numbers in (("bytes", totals.loaded + totals.stored), ("flops", totals.flops))
            if numbers.any()
        ),
        contention=_contention(found, scale),
        roofline=roofline(
            device,
            work,
            least=sum(t.distinct_loaded for t in tensors) + sum(distinct_written.values()),
            programs=round(sum(t.distinct_loaded * t.repeats_across for t in tensors)) + each,
            most=sum(site.sectors for site in sites) * SECTOR,
        ),
        compiled=launched.compiled,
        findings=(),
    )
    return msgspec.structs.replace(report, findings=find(report, launched.kernel, launched.arguments, device))


def _site(site: SiteTotals, scale: float, ran: int, programs: int) -> SiteTraffic:
    moved = site.elements * site.width
    distinct, exact = _distinct([site], scale, ran, programs)
    in_programs = round(min(moved, site.in_programs * _unit(site)) * scale)
    return SiteTraffic(
        site=site.path,
        kind=site.kind,
        tensor=site.tensor.name,
        dtype=site.tensor.dtype,
        block=site.block,
        steps=None if site.irregular else site.steps,
        elements=round(site.elements * scale),
        masked_off=round((site.possible - site.elements) * scale),
        bytes=round(moved * scale),
        error=sampling.error_of(site.elements, site.squares, ran, programs),
        mask_waste=1 - site.elements / site.possible if site.possible else 0.0,
        most_used=site.most_used,
        requests=round(site.requests * scale),
        sectors=round(site.sectors * scale),
        sectors_per_request=site.sectors / site.requests if site.requests else 0.0,
        coalescing=site.ideal / site.sectors if site.sectors else 1.0,
        distinct_bytes=distinct,
        distinct_in_programs=in_programs,
        repeats_in_program=_ratio(moved * scale, in_programs),
        repeats_across=_ratio(in_programs, distinct),
        exact=exact,
    )


def _unit(site: SiteTotals) -> int:
    """The size of the counted units in bytes: that of the tensor's elements, or larger if a pointer was
    cast."""
    return max(site.width, site.tensor.itemsize)


def _ratio(a: float, b: float) -> float:
    return max(1.0, a / b) if b else 1.0


def _distinct(sites: list[SiteTotals], scale: float, ran: int, programs: int) -> tuple[int, bool]:
    """The distinct bytes that these sites access in one tensor, and whether that is exact."""
    sites = [site for site in sites if site.elements]
    if not sites:
        return 0, True
    tensor = sites[0].tensor
    most = Footprint.bytes_for(tensor)
    unit = max(_unit(site) for site in sites)
    moved = sum(site.elements * site.width for site in sites) * scale
    if any(site.footprint is None for site in sites):
        return round(min(moved, most * unit, sum(s.in_programs for s in sites) * unit * scale)), False
    marks = [site.footprint for site in sites if site.footprint is not None]
    whole = functools.reduce(Footprint.union, marks).count()
    exact = all(site.exact and site.width == tensor.itemsize for site in sites)
    halves = [site.half for site in sites if site.half is not None]
    if ran < programs and halves:
        half = functools.reduce(Footprint.union, halves).count()
        return round(min(moved, sampling.extrapolated(whole, half, ran, programs, most) * unit)), False
    # Without halves there is no sample: the other programs did not run because the launch failed.
    return min(round(moved), whole * unit), exact and ran == programs


def _tensors(
    totals: LaunchTotals, sites: list[SiteTotals], scale: float, ran: int
) -> tuple[TensorTraffic, ...]:
    result = []
    by_name: dict[str, list[SiteTotals]] = {}
    for site in sites:
        by_name.setdefault(site.tensor.name, []).append(site)
    for name, own in by_name.items():
        tensor = own[0].tensor
        loads = [site for site in own if site.kind == "load"]
        writes = [site for site in own if site.kind != "load"]

        def moved(kind: str, own: list[SiteTotals] = own) -> int:
            return round(sum(s.elements * s.width for s in own if s.kind == kind) * scale)

        in_programs, exact = totals.loads_in_programs.get(name, (0.0, True))
        in_programs = min(moved("load"), in_programs * scale * max(map(_unit, loads), default=0))
        loaded, load_exact = _distinct(loads, scale, ran, totals.programs)
        stored, store_exact = _distinct(writes, scale, ran, totals.programs)
        result.append(
            TensorTraffic(
                tensor=name,
                shape=tensor.shape,
                dtype=tensor.dtype,
                loaded=moved("load"),
                stored=moved("store"),
                atomics=moved("atomic"),
                distinct_loaded=loaded,
                distinct_stored=stored,
                repeats_in_program=_ratio(moved("load"), in_programs),
                repeats_across=_ratio(in_programs, loaded),
                exact=exact and load_exact and store_exact,
            )
        )
    return tuple(result)


def _loop(position: tuple[str, int], loop: LoopTotals, scale: float) -> Loop:
    file, line = position
    kind = "while" if not loop.counted else "static_range" if _is_static(file, line) else "range"
    return Loop(
        file=file,
        line=line,
        kind=kind,
        unrolled=kind == "static_range",
        trips_least=0.0 if loop.least == float("inf") else loop.least,
        trips_most=loop.most,
        trips_total=round(loop.trips * scale),
    )


def _is_static(file: str, line: int) -> bool:
    """Whether the `for` in this line is over `static_range`, or not over a range."""
    for node in _fors(file):
        if node.lineno == line:
            called = ast.unparse(node.iter.func) if isinstance(node.iter, ast.Call) else ""
            return called.rsplit(".", 1)[-1] != "range"
    return False


@functools.lru_cache(64)
def _fors(file: str) -> tuple[ast.For, ...]:
    try:
        tree = ast.parse(Path(file).read_text())
    except (OSError, SyntaxError, ValueError):  # a kernel that was typed into a prompt
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.For))


def _balance(of: str, numbers: np.ndarray, totals: LaunchTotals) -> Balance:
    positions = np.flatnonzero(totals.ran)
    own = numbers[positions]
    heaviest = positions[np.argsort(-own, kind="stable")[:3]]
    mean = float(own.mean())

    def program(position: Any) -> tuple[int, int, int]:
        return Programs(totals.grid, Numbers(1, int(position))).only()

    return Balance(
        of=of,
        least=int(own.min()),
        median=float(np.median(own)),
        most=int(own.max()),
        mean=mean,
        imbalance=float(own.max()) / mean if mean else 1.0,
        heaviest=tuple(program(position) for position in heaviest),
        lightest=program(positions[np.argmin(own)]),
    )


def _contention(sites: list[SiteTotals], scale: float) -> tuple[Contention, ...]:
    by_tensor: dict[str, list[SiteTotals]] = {}
    for site in sites:
        if site.hits:
            by_tensor.setdefault(site.tensor.name, []).append(site)
    result = []
    for name, own in by_tensor.items():
        elements, counts = merged_hits([part for site in own for part in site.hits])
        if not len(elements):
            continue
        hottest = int(np.argmax(counts))
        tensor = own[0].tensor
        position = int(tensor.elements(elements[hottest : hottest + 1])[0])
        index: tuple[int, ...] | int = int(elements[hottest])
        if position >= 0 and tensor.shape:
            index = tuple(int(i) for i in np.unravel_index(position, tensor.shape))
        result.append(
            Contention(
                tensor=name,
                updates=round(int(counts.sum()) * scale),
                elements=len(elements),
                hottest=index,
                hits=round(int(counts[hottest]) * scale),
                mean=float(counts.mean()) * scale,
            )
        )
    return tuple(result)
