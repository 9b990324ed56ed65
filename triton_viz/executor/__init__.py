"""The grid executor: all programs of a grid at once, one lane each, on NumPy.

Every value has a leading lane axis (one lane per program, or length 1 where all lanes agree). Knows no
language: what is particular to Triton is in `triton_viz.dsls.triton`.
"""
