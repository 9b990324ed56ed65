"""What five small jobs take in GT: `python gt_benchmark.py [host:port]`.

With an address, on the system that runs there (`python simple_launch.py --no-test`); without, inside this
program.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.workloads import report

if __name__ == "__main__":
    import gt

    address = sys.argv[1] if len(sys.argv) > 1 else None
    if address is not None:
        gt.connect(address)
    report(f"GT, {address or 'embedded'}", gt)
