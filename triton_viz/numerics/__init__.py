"""Functions of arrays that NumPy lacks: narrow floats, directed rounding, special functions, libdevice."""
