"""Triton: Triton's own language layer calls our builder, which runs kernels on the grid executor.

`ops/` has each op over lanes, `control_flow/` branches and loops over lanes, `symbolic/` the static analysis,
`compiler/` Triton's compiler. `language_patches` patches Triton during a launch, `grid_launch` runs one;
differences between Triton's releases are in `compat`.
"""

from triton_viz.dsls.triton.triton_dsl import TRITON

__all__ = ["TRITON"]
