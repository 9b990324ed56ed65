"""Copying, pickling, and exchange with other libraries."""

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gt.autograd.graph import Leaf, TapeNode
from gt.client.session import current
from gt.errors import GraphError
from gt.tensors.base import TensorBase, upload

if TYPE_CHECKING:
    from gt.tensors.tensor import Tensor


class ExchangeMethods(TensorBase):
    """Copies, pickles, and DLPack."""

    __slots__ = ()

    def _with_edge(self, edge: Any) -> "Tensor":
        # A value never changes, so it is shared.
        copied = object.__new__(self._class_of_copy())
        copied._value, copied._edge = self._value, edge
        return cast("Tensor", copied)

    def _class_of_copy(self) -> type:
        """The class of a copy: a copy of a parameter is a parameter."""
        return type(self)

    def __copy__(self) -> "Tensor":
        edge = self._edge
        return self._with_edge(Leaf(edge.requires_grad) if isinstance(edge, Leaf) else edge)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Tensor":
        edge = self._edge
        if isinstance(edge, TapeNode):
            raise GraphError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at "
                "the moment. Use x.detach() or x.clone()"
            )
        leaf = None
        if edge is not None:
            leaf = Leaf(edge.requires_grad)
            leaf.grad = None if edge.grad is None else edge.grad._value.tensor()
        memo[id(self)] = copied = self._with_edge(leaf)
        return copied

    def __reduce__(self) -> Any:
        """For pickle: the values, which are fetched. Only for the user's files: messages are never
        pickled."""
        this = cast("Tensor", self)
        if not this.is_leaf:
            raise GraphError("only a leaf can be pickled: use x.detach()")
        return _unpickled, (self._class_of_copy(), this._fetch(), self._value.spec.dtype, this.requires_grad)

    # --- other libraries: torch.from_dlpack(x), np.from_dlpack(x) ---

    def __dlpack__(self, **options: Any) -> Any:
        """The values, which are fetched, as a DLPack capsule."""
        options.pop("stream", None)
        return cast("Tensor", self).numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return np.empty(0).__dlpack_device__()  # the tensor is fetched into memory of the CPU, wherever it is


def _unpickled(kind: type, array: np.ndarray, dtype: str, requires_grad: bool) -> "Tensor":
    plain = upload(current(), array, owned=True).to(dtype)
    copied = object.__new__(kind)
    copied._value, copied._edge = plain._value, Leaf(True) if requires_grad else None
    return copied
