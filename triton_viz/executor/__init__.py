"""The grid executor: runs all programs of a grid at once on NumPy, each in its own lane.

Every value has a leading lane axis (one lane per program, or length 1 where all lanes agree). The executor is
independent of the kernel's language.
"""
