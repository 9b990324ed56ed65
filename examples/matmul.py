"""Trace a tiled matrix product, and see which tiles each program reads.

    python -m examples.matmul            # prints the ops of one program
    python -m examples.matmul --show     # and opens the page on it

Each program computes one 16 x 16 tile of C from a row of tiles of A and a column of tiles of B. The last
tiles stand out over the edge, and a mask switches those elements off.
"""

import argparse

import numpy as np
import torch
import triton
import triton.language as tl

import triton_viz
from triton_viz.core.data import Access, Dot


@triton_viz.trace("tracer")
@triton.jit
def matmul(a, b, c, M, N, K, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None]
    j = tl.program_id(1) * TILE + tl.arange(0, TILE)[None, :]
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, K, TILE):
        across = start + tl.arange(0, TILE)[None, :]
        inside = (i < M) & (across < K)
        left = tl.load(a + i * K + across, inside, 0.0)
        down = start + tl.arange(0, TILE)[:, None]
        inside = (down < K) & (j < N)
        right = tl.load(b + down * N + j, inside, 0.0)
        total = tl.dot(left, right, total, "ieee")
    tl.store(c + i * N + j, total, (i < M) & (j < N))


def run(m: int = 40, n: int = 56, k: int = 48, tile: int = 16) -> torch.Tensor:
    """Multiply two matrices with the kernel, and check the product."""
    a, b, c = torch.randn(m, k), torch.randn(k, n), torch.empty(m, n)
    matmul[(triton.cdiv(m, tile), triton.cdiv(n, tile))](a, b, c, m, n, k, TILE=tile)
    torch.testing.assert_close(c, a @ b)
    return c


def main() -> None:
    parser = argparse.ArgumentParser(description="Trace a tiled matrix product.")
    parser.add_argument("--show", action="store_true", help="open the page on the trace")
    parser.add_argument("-p", "--port", type=int, help="default: 8000, or any free one")
    options = parser.parse_args()

    run()
    launch = triton_viz.launches[-1]
    tensors = {tensor.name: tensor for tensor in launch.tensors}
    print(f"{launch.kernel} ran a grid of {launch.grid}; program (2, 1, 0) did this:")
    for op in launch.at((2, 1, 0)):
        if isinstance(op, Access):
            tensor = tensors[op.tensor]
            rows, columns = np.unravel_index(tensor.elements(op.offsets[op.mask]), tensor.shape)
            masked = int((~op.mask).sum())
            where = f"{tensor.name}[{rows.min()}:{rows.max() + 1}, {columns.min()}:{columns.max() + 1}]"
            print(f"  {type(op).__name__:<5}  {where:<15}  {masked:>3} elements masked off")
        elif isinstance(op, Dot):
            print(f"  Dot    {op.left} @ {op.right}")
    if options.show:
        triton_viz.launch(options.port)


if __name__ == "__main__":
    main()
