"""Tests. PyTorch, NumPy and Triton's own interpreter are the oracles.

They compute with one thread: several processes test at once, and threads that wait for each other take the
time of the others.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
