"""Reports as tables on a terminal."""

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from triton_viz.clients.profiler.kernel_profile import KernelReport, Report
from triton_viz.core.data import Site

_UNITS = ("", "K", "M", "G", "T", "P")
_DETAILED = 5
"""How many kernels are printed in detail."""


def print_report(report: Report, console: Console | None = None) -> None:
    """Print an overview of all kernels, and the heaviest launch of the heaviest ones in detail."""
    console = console or Console()
    if not report.launches:
        console.print("profiler: no kernel was launched")
        return
    by_kernel: dict[tuple[str, str, int], list[KernelReport]] = {}
    for launch in report.launches:
        by_kernel.setdefault((launch.kernel, launch.file, launch.line), []).append(launch)
    kernels = sorted(by_kernel.values(), key=lambda all: -sum(one.roofline.seconds for one in all))
    if len(report.launches) > 1:
        console.print(_overview(kernels))
    for launches in kernels[:_DETAILED]:
        _print_launch(max(launches, key=lambda one: one.roofline.seconds), len(launches), console)
    if len(kernels) > _DETAILED:
        console.print(f"... and {len(kernels) - _DETAILED} kernels that cost less")


def amount(number: float, unit: str) -> str:
    """Format a large number with a unit prefix: 1.5 MB."""
    power = 0
    while abs(number) >= 1000 and power < len(_UNITS) - 1:
        number, power = number / 1000, power + 1
    return f"{number:.3g} {_UNITS[power]}{unit}"


def duration(seconds: float) -> str:
    """Format a time: 1.5 ms."""
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title or None, title_justify="left", header_style="bold")
    for column in columns:
        left = column in ("line", "tensor", "kernel", "what", "of", "loop", "most by")
        table.add_column(column, justify="left" if left else "right", overflow="fold")
    return table


def _overview(kernels: list[list[KernelReport]]) -> Table:
    table = _table("kernels", "kernel", "launches", "loaded", "stored", "flops", "at best")
    for launches in kernels:
        table.add_row(
            launches[0].kernel,
            str(len(launches)),
            amount(sum(one.loaded for one in launches), "B"),
            amount(sum(one.stored for one in launches), "B"),
            amount(sum(one.flops for one in launches), ""),
            duration(sum(one.roofline.seconds for one in launches)),
        )
    return table


def _print_launch(launch: KernelReport, launches: int, console: Console) -> None:
    roof = launch.roofline
    console.print()
    where = f"{Path(launch.file).name}:{launch.line}"
    heading = f"{launch.kernel} ({where}), grid {launch.grid}, {launch.programs:,} programs"
    if launches > 1:
        heading += f" (the heaviest of {launches} launches)"
    console.print(Text(heading, style="bold"))
    if launch.ran < launch.programs:
        console.print(
            f"a sample of {launch.ran:,} programs, scaled: loaded ±{launch.loaded_error:.1%}, "
            f"stored ±{launch.stored_error:.1%}, flops ±{launch.flops_error:.1%}"
        )
    if launch.skipped:
        console.print(f"{' and '.join(launch.skipped)} were skipped: no real data was there")
    console.print(
        f"loaded {amount(launch.loaded, 'B')}, stored {amount(launch.stored, 'B')}, "
        f"{amount(launch.flops, 'flop')}; on a {roof.device} at best {duration(roof.seconds)}, "
        f"{roof.bound}-bound ({roof.intensity:.3g} flop/B, ridge {roof.ridge:.3g})"
    )
    console.print(_sites(launch))
    for balance in launch.balance:
        if balance.imbalance > 1.05:
            console.print(
                f"{balance.of} per program: {balance.least:,} to {balance.most:,}, "
                f"median {balance.median:,.0f}, most in {balance.heaviest[0]}"
            )
    for loop in launch.loops:
        trips = f"{loop.trips_least:g}" + (
            f" to {loop.trips_most:g}" if loop.trips_most != loop.trips_least else ""
        )
        state = "unrolled" if loop.unrolled else "not unrolled"
        console.print(f"{Path(loop.file).name}:{loop.line} {loop.kind} loop, {trips} iterations, {state}")
    if launch.compiled is not None:
        made = launch.compiled
        numbers = {
            "registers": made.registers,
            "bytes spilled": made.spills,
            "bytes of shared memory": made.shared,
        }
        said = ", ".join(f"{n} {what}" for what, n in numbers.items() if n is not None)
        done = f"not compiled for {made.target}: {made.error}"
        if not made.error:
            done = f"compiled for {made.target} ({made.language}): {said}"
        console.print(done, markup=False)
    for finding in launch.findings:
        where = f"{Path(finding.file).name}:{finding.line} " if finding.line else ""
        of = f"{finding.tensor}: " if finding.tensor else ""
        change = finding.change[:1].upper() + finding.change[1:]
        console.print(
            Text.assemble((f"{where}{of}", "cyan"), f"{finding.message}. ", (f"{change}.", "green"))
        )


def _line(site: Site | None, kernel_file: str) -> str:
    if site is None:
        return ""
    return str(site.line) if site.file == kernel_file else f"{Path(site.file).name}:{site.line}"


def _sites(launch: KernelReport) -> Table:
    table = _table(
        *("", "line", "what", "tensor", "bytes", "masked", "sectors", "packed", "repeats", "programs")
    )
    for site in launch.sites:
        about = "" if site.exact else "~"
        where = site.site[-1] if site.site else None
        table.add_row(
            _line(where, launch.file),
            site.kind,
            site.tensor,
            amount(site.bytes, "B") + (f" ±{site.error:.1%}" if site.error else ""),
            f"{site.mask_waste:.0%}",
            f"{site.sectors_per_request:.1f}",
            f"{site.coalescing:.0%}",
            f"{about}{site.repeats_in_program:.3g}",
            f"{about}{site.repeats_across:.3g}",
        )
    return table
