"""Triton: kernels run on our grid executor, below Triton's own language layer.

`builder` says what each op does to lanes, `flow` and `rewrite` what control flow does, `language` what of
Triton is patched meanwhile. `run` is a launch. What differs between Triton's releases is in `compat`.
"""

from triton_viz.dsls.triton.triton_dsl import TRITON

__all__ = ["TRITON"]
