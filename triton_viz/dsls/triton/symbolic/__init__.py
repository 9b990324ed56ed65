"""The symbolic engine: runs a kernel once with open program ids, and proves where its accesses stay.

    analysis = analyze(call, grid, tensors)

What it says "ok" to holds for every program of the grid, every iteration and every element that is not
masked off. A "violation" comes with a witness. Anything else is for checking on real data.
"""

from triton_viz.dsls.static_analysis import AccessVerdict, Analysis, Witness
from triton_viz.dsls.triton.symbolic.engine import analyze

__all__ = ["AccessVerdict", "Analysis", "Witness", "analyze"]
