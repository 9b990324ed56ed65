"""Writes docs/ops.md and type stubs from the op table: `python -m tools.op_list`.

A test compares the files with the table.
"""

from pathlib import Path

import gt
from gt.ops import Row
from gt.ops.table import GROUPS, TABLE
from tools import op_stubs

FILE = Path(__file__).parents[1] / "docs/ops.md"

HEAD = """# Ops

Every operation is one row of the op table ([gt/ops](../gt/ops)). This page is written from it by
`python -m tools.op_list`. *In the log* is the kind that the instruction log shows. Users rarely see the names
on the left, but the methods and functions that issue them: `x.exp()`, `gt.exp(x)`, `x[1:3]`, `nn.Linear`.
A name that ends in `_` works in place.
"""

TITLES = "| op | in the log | gradient | typed as | PyTorch's function | NumPy's |"


def line(row: Row) -> str:
    """An op's line of the page."""
    functions = [row.engines[name].replace("gt.worker.engine.", "") for name in ("pytorch", "numpy")]
    cells = [
        f"`{row.name}`",
        row.kind,
        "yes" if row.differentiable else "",
        ", ".join(f"`{name}()`" for name in _typed(row)),
        *(f"`{name}`" for name in functions),
    ]
    return "| " + " | ".join(cells) + " |"


def _typed(row: Row) -> list[str]:
    """What users type to issue an op: its methods, their functions and in-place forms."""
    if not row.methods:  # one with arguments of its own may have the op's name
        named = [("x", gt.Tensor, row.name), ("gt", gt, row.name), ("x", gt.Tensor, f"{row.name}_")]
        return [f"{prefix}.{name}" for prefix, owner, name in named if hasattr(owner, name)]
    typed = []
    for method in row.methods:
        for name in method.names.split():
            typed.append(f"x.{name}")
            typed += [f"gt.{name}"] if method.function else []
            typed += [f"x.{name}_"] if method.in_place else []
    return typed


def written() -> str:
    """The text of the page."""
    parts = [HEAD, f"There are {len(TABLE)} of them.\n"]
    for group in GROUPS:
        parts.append(f"## {(group.__doc__ or '').splitlines()[0].rstrip('.')}\n")
        parts += [TITLES, "| --- " * 6 + "|"]
        parts += [line(TABLE[row.name]) for row in group.ROWS]
        parts.append("")
    return "\n".join(parts)


if __name__ == "__main__":
    FILE.write_text(written())
    for path, text in op_stubs.written().items():
        path.write_text(text)
