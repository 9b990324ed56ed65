"""The times of five small jobs in plain PyTorch: `python pytorch_baseline.py`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.workloads import report

if __name__ == "__main__":
    import torch

    report("PyTorch", torch)
