"""The op table: every operation is defined in one row.

The columns of a row (`gt.ops.row.Row`) are an op's name, the shape and dtype of its result, its gradient (in
GT ops), the function that each engine computes it with, how it is sharded, and how users call it. The
methods of Tensor, `gt.NAME`, in-place forms, docs/ops.md, workers and tests are made from this table: adding
an op is adding a row. The table imports no engine; it names functions such as `"torch.relu"`, and a worker
resolves the name on first use, so a client never imports torch.

Imports nothing of gt but `gt.errors`.
"""

from gt.ops.method import Method, Samples
from gt.ops.row import Row, Size, Spec
from gt.ops.table import TABLE, register

__all__ = ["TABLE", "Method", "Row", "Samples", "Size", "Spec", "register"]
