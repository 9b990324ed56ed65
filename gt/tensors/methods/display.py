"""How tensors are printed: in a terminal, and in a notebook.

Only the elements that are shown are fetched, so that a tensor of any size prints at once.
"""

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gt.tensors.base import TensorBase, upload

if TYPE_CHECKING:
    from gt.tensors.tensor import Tensor

WHOLE = 1000
"""The largest number of elements that is shown in full. PyTorch's and NumPy's number."""

EDGE = 3
"""The number of elements that are shown at each end of a dimension whose middle is left out."""


class DisplayMethods(TensorBase):
    """`print(x)`, and `x` at the end of a notebook's cell."""

    __slots__ = ()

    def __repr__(self) -> str:
        shape, name = self._value.spec.shape, self._value.spec.dtype
        this = cast("Tensor", self)
        parts = [self._text()]
        if this.numel() == 0 and shape != (0,):
            parts.append(f"size={tuple(shape)}")
        if name not in ("float32", "int64", "bool"):
            parts.append(f"dtype={this.dtype!r}")
        if this.requires_grad:
            node = this.grad_fn
            parts.append("requires_grad=True" if node is None else f"grad_fn=<{node.op}>")
        return f"tensor({', '.join(parts)})"

    def __format__(self, spec: str) -> str:
        """A tensor of no dimensions is formatted as the number it holds: `f"{loss:.3f}"`."""
        this = cast("Tensor", self)
        return object.__format__(self, spec) if this.ndim else format(this.item(), spec)

    def _text(self) -> str:
        values = self._shown()
        # As in PyTorch: four decimals, unless all values are integers.
        real = values[np.isfinite(values)] if values.dtype.kind == "f" else values
        style: dict[str, Any] = (
            {} if (real == np.trunc(real)).all() else {"precision": 4, "floatmode": "fixed"}
        )
        threshold = 0 if self._is_large() else WHOLE
        return np.array2string(
            values, separator=", ", prefix="tensor(", threshold=threshold, edgeitems=EDGE, **style
        )

    def _is_large(self) -> bool:
        return cast("Tensor", self).numel() > WHOLE

    def _shown(self) -> np.ndarray:
        """The values that are shown and, in each abbreviated dimension, one more for those that are
        omitted."""
        x = self._value.tensor()
        if self._is_large():
            for dim, n in enumerate(x.shape):
                if n > 2 * EDGE + 1:
                    ends = np.r_[: EDGE + 1, n - EDGE : n]
                    x = x._apply("index", upload(self._value.client, ends, owned=True), dims=(dim,))
        return x._fetch()

    def _repr_html_(self) -> str:
        """A table of the values, for notebooks; for more than two dimensions, the text of `print(x)`."""
        import html  # slow to import, and only notebooks need it

        shape = self._value.spec.shape
        title = html.escape(f"{list(shape)} {cast('Tensor', self).dtype!r}")
        if 0 in shape or len(shape) > 2:
            body = f"<pre>{html.escape(self._text())}</pre>"
        else:
            large = self._is_large()
            rows = np.atleast_2d(self._shown())
            lines = [_html_row(row, large and len(row) > 2 * EDGE) for row in rows]
            if large and len(lines) > 2 * EDGE:
                lines[EDGE : len(lines) - EDGE] = ["<tr><td>⋮</td></tr>"]
            body = f"<table>{''.join(lines)}</table>"
        return f"<div><code>{title}</code>{body}</div>"


def _html_row(row: np.ndarray, shorten: bool) -> str:
    """A row of the table. Numbers and bools need no HTML escapes."""
    cells = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.tolist()]
    if shorten:
        cells[EDGE : len(cells) - EDGE] = ["…"]
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
