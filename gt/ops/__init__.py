"""The op table: what every operation is, said once.

A row says an op's name, the shape and dtype of its result, its gradient (in GT ops), and the function
each engine computes it with. The client's methods, the workers' engines and the tests all read this
table: adding an op is adding a row. The table imports no engine; it names functions such as
`"torch.relu"`, and a worker resolves the name when it first needs it, so a client never imports torch.

Imports nothing of gt but `gt.errors`.
"""

from gt.ops.row import Row, Size, Spec
from gt.ops.table import TABLE

__all__ = ["TABLE", "Row", "Size", "Spec"]
