"""Trace a Triton kernel on the CPU, and look at it.

    python -m examples.vector_add            # prints the accessed elements
    python -m examples.vector_add --show     # and opens the page on it

Prints one line per program of the grid: which elements it loaded and stored, and how many its mask
switched off. The last program of four is only partly full.
"""

import argparse

import torch
import triton
import triton.language as tl

import triton_viz
from triton_viz.core.data import Access


@triton_viz.trace("tracer")
@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    total = tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask)
    tl.store(out + at, total, mask=mask)


def run(n: int = 100, block: int = 32) -> torch.Tensor:
    """Add two vectors with the kernel, and check the sum."""
    x, y = torch.arange(n, dtype=torch.float32), torch.ones(n)
    out = torch.empty(n)
    vector_add[(triton.cdiv(n, block),)](x, y, out, n, BLOCK=block)
    torch.testing.assert_close(out, x + y)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description="Trace a vector addition.")
    parser.add_argument("--show", action="store_true", help="open the page on the trace")
    parser.add_argument("-p", "--port", type=int, help="default: 8000, or any free one")
    options = parser.parse_args()

    run()
    launch = triton_viz.launches[-1]
    print(f"{launch.kernel} ran {launch.grid[0]} programs, and left {len(launch.records)} records:")
    for program in launch.programs():
        for op in launch.at(program):
            if isinstance(op, Access):
                touched = op.offsets[op.mask]
                print(
                    f"  program {program[0]}  {type(op).__name__:<5}  {op.tensor:<3} "
                    f"[{touched.min():>3} .. {touched.max():>3}]  {(~op.mask).sum():>2} elements masked off"
                )
    if options.show:
        triton_viz.launch(options.port)


if __name__ == "__main__":
    main()
