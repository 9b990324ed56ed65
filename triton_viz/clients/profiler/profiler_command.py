"""`triton-profiler script.py`: run a program, and report the memory traffic and arithmetic of its kernels."""

import argparse
from pathlib import Path

from triton_viz.clients.cli.command_line import main_for
from triton_viz.clients.profiler.devices import DEVICES
from triton_viz.clients.profiler.profiler import Profiler


def _sample(text: str) -> float | int:
    return int(text) if text.isdecimal() else float(text)


def _add_options(parser: argparse.ArgumentParser) -> None:
    names = ", ".join(device.name for device in DEVICES.values())
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the report to a file")
    parser.add_argument("--device", default="H100", help=f"the device of the roofline: {names}")
    parser.add_argument("--target", help="also compile for this target, such as cuda:90 or hip:gfx942")
    parser.add_argument(
        "--sample",
        type=_sample,
        help="run only a share (0.1) or a number (64) of the programs, and scale counts",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the random choice of programs for --sample"
    )


def _client(options: argparse.Namespace) -> Profiler:
    return Profiler(device=options.device, sample=options.sample, seed=options.seed, target=options.target)


def _report(profiler: Profiler, options: argparse.Namespace) -> int:
    if options.json is not None:
        options.json.write_text(profiler.report().to_json() + "\n")
    profiler.print_report()
    return 0


main = main_for(
    _client,
    _report,
    name="triton-profiler",
    description="Run a program, and report the memory traffic and arithmetic of each Triton kernel.",
    add_options=_add_options,
)

if __name__ == "__main__":
    raise SystemExit(main())
