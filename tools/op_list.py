"""Writes docs/ops.md from the op table: `python -m tools.op_list`. A test holds the file to the table."""

from pathlib import Path

import gt
from gt.ops.table import GROUPS, TABLE

FILE = Path(__file__).parents[1] / "docs/ops.md"

HEAD = """# Ops

Every operation is one row of the op table ([gt/ops](../gt/ops)). This page is written from it by
`python -m tools.op_list`. *In the log* is what the instruction log calls an op. Users rarely see the names
on the left, but the methods and functions that issue them: `x.exp()`, `gt.exp(x)`, `x[1:3]`, `nn.Linear`.
"""

TITLES = "| op | in the log | gradient | typed as | PyTorch's function | NumPy's |"


def written() -> str:
    """What the page should say."""
    parts = [HEAD, f"There are {len(TABLE)} of them.\n"]
    for group in GROUPS:
        parts.append(f"## {(group.__doc__ or '').splitlines()[0].rstrip('.')}\n")
        parts += [TITLES, "| --- " * 6 + "|"]
        for row in group.ROWS:
            typed = [f"`x.{row.name}()`"] if hasattr(gt.Tensor, row.name) else []
            typed += [f"`gt.{row.name}()`"] if hasattr(gt, row.name) else []
            engines = [row.engines[name].replace("gt.worker.engine.", "") for name in ("pytorch", "numpy")]
            cells = [
                f"`{row.name}`",
                row.kind,
                "yes" if row.differentiable else "",
                ", ".join(typed),
                *(f"`{name}`" for name in engines),
            ]
            parts.append("| " + " | ".join(cells) + " |")
        parts.append("")
    return "\n".join(parts)


if __name__ == "__main__":
    FILE.write_text(written())
