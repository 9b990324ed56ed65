"""Numerics that NumPy lacks: narrow floats, directed rounding, special functions, libdevice.

Arrays in, arrays out. Imports no DSL and no client.
"""
