"""The times of five small jobs in GT: `python gt_benchmark.py [host:port]`.

On the system that runs at the address, or at the default port (`python simple_launch.py --no-test`); if none
runs there, on one that this program starts. The first line says which.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

if __name__ == "__main__":
    import gt
    from benchmarks.running_system import use_system
    from benchmarks.workloads import report

    report(f"GT, on {use_system(*sys.argv[1:2])}", gt)
