"""Where a client's tensor physically is."""

from typing import NamedTuple


class TensorHandle(NamedTuple):
    """Where the tensors of a kind are: which worker holds them.

    The dispatcher maps every `client:tensor` to a handle. Tensors that lie alike share one handle, so that
    placing a tensor costs a dictionary entry and nothing else.
    """

    worker: str
