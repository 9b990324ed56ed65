"""The languages that kernels are written in. One module each; `OPERATION_REGISTRY` lists them.

Everything that is particular to a language, or to a release of it, is in its module. Adding a language
adds a module here and touches neither core nor clients.
"""

from triton_viz.dsls.base import DSL
from triton_viz.dsls.nki import NKI
from triton_viz.dsls.triton import TRITON

OPERATION_REGISTRY: dict[str, DSL] = {"triton": TRITON, "nki": NKI}

__all__ = ["DSL", "OPERATION_REGISTRY"]
