"""Kernels that a grid executor must run right, each with an oracle. `CASES` lists them all.

A file holds the kernels of one theme, with the PyTorch, NumPy or plain Python that says what must come
out, and its own `CASES`. Every kernel is real Triton: `compiling.py` compiles it for a GPU.
"""

from tests.triton_viz.corpus import (
    arithmetic,
    atomics,
    attention,
    block_pointers,
    branches,
    calling,
    casts,
    conditions,
    cooperation,
    descriptors,
    elementwise,
    libdevice_calls,
    libdevice_math,
    loops,
    matmuls,
    memory,
    models,
    randoms,
    rarities,
    reductions,
    rows,
    scans,
    shapes,
    while_loops,
)
from tests.triton_viz.corpus.case import Case

THEMES = (
    arithmetic,
    elementwise,
    casts,
    libdevice_math,
    libdevice_calls,
    reductions,
    scans,
    shapes,
    branches,
    conditions,
    loops,
    while_loops,
    atomics,
    memory,
    calling,
    randoms,
    rows,
    matmuls,
    attention,
    descriptors,
    block_pointers,
    rarities,
    models,
    cooperation,
)

CASES: list[Case] = [case for theme in THEMES for case in theme.CASES]
