"""Triton's own compiler, run in a process of its own for a named target."""
