"""The symbolic engine: runs a kernel once with symbolic program ids, and proves that accesses are in bounds.

    analysis = analyze(call, grid, tensors)

The verdict "ok" holds for every program of the grid, every iteration and every element that is not masked
off. A "violation" has a witness. Accesses with any other verdict have to be checked while the kernel runs.
"""

from triton_viz.dsls.static_analysis import AccessVerdict, Analysis, Witness
from triton_viz.dsls.triton.symbolic.engine import analyze

__all__ = ["AccessVerdict", "Analysis", "Witness", "analyze"]
