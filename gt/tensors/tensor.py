"""The tensor of users' programs: an id, a shape, a dtype, and gradient state. It has no data, and no
location."""

import math
from typing import Any

import numpy as np

from gt.autograd.graph import GRAPH, Hook, HookHandle, Leaf, TapeNode, is_grad_enabled
from gt.errors import GraphError, ShapeError
from gt.ops import Size, dtypes, shapes
from gt.tensors.api import api, complete
from gt.tensors.base import Number, TensorBase, Value, create, leaf, upload
from gt.tensors.device import Device
from gt.tensors.generated.in_place import GeneratedInPlace
from gt.tensors.methods.creation import CreationMethods
from gt.tensors.methods.display import DisplayMethods
from gt.tensors.methods.exchange import ExchangeMethods
from gt.tensors.methods.in_place import InPlaceMethods
from gt.tensors.methods.indexing import IndexMethods
from gt.tensors.methods.products import ProductMethods
from gt.tensors.methods.reductions import ReductionMethods


class Tensor(
    GeneratedInPlace,
    InPlaceMethods,
    ReductionMethods,
    IndexMethods,
    ProductMethods,
    CreationMethods,
    DisplayMethods,
    ExchangeMethods,
):
    """A PyTorch-like tensor. Operations return at once; reading the data waits for it.

    >>> a = gt.tensor([1, 2, 3])
    >>> (a + 1).tolist()
    [2, 3, 4]
    """

    __slots__ = ()
    # So that NumPy calls `tensor.__rmul__` for `array * tensor`, instead of looping over the elements.
    __array_priority__ = 1000

    # --- properties ---

    @property
    def id(self) -> int:
        """The tensor's number in the instruction stream."""
        return self._value.id

    @property
    def shape(self) -> Size:
        """The size of each dimension."""
        return self._value.spec.shape

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one size of it."""
        return self.shape if dim is None else self.shape[shapes.normalize_dim(dim, self.ndim)]

    @property
    def dtype(self) -> dtypes.DType:
        """The dtype of the elements."""
        return dtypes.NAMED[self._value.spec.dtype]

    @property
    def device(self) -> Device:
        """Always "cpu", for programs that were written for PyTorch: the server decides which worker has a
        tensor."""
        return Device("cpu")

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._value.spec.shape)

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self._value.spec.shape)

    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self._value.spec.shape)

    @api()
    def is_floating_point(self) -> bool:
        """Whether its dtype is a floating point dtype."""
        return dtypes.is_float(self._value.spec.dtype)

    # --- gradients ---

    @property
    def requires_grad(self) -> bool:
        """Whether a gradient is computed for it, or for tensors that it was computed from."""
        return self._edge is not None and self._edge.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def is_leaf(self) -> bool:
        """Whether it was not computed by a recorded op."""
        return not isinstance(self._edge, TapeNode)

    @property
    def grad(self) -> "Tensor | None":
        """The gradient that backward() has accumulated, if any."""
        return None if self._edge is None else self._edge.grad

    @grad.setter
    def grad(self, value: "Tensor | None") -> None:
        if value is not None and value.shape != self.shape:
            raise ShapeError(
                f"a gradient of shape {list(value.shape)} does not fit a tensor of shape {list(self.shape)}"
            )
        if self._edge is None:
            if value is None:
                return
            self._edge = Leaf(False)
        self._edge.grad = value

    @property
    def grad_fn(self) -> TapeNode | None:
        """The op on the tape that created it, if it was recorded."""
        return self._edge if isinstance(self._edge, TapeNode) else None

    def backward(self, gradient: "Tensor | np.ndarray | None" = None, retain_graph: bool = False) -> None:
        """Compute the gradients of this tensor with respect to all leaves, and add them to their `grad`."""
        edge = self._edge
        if edge is None or not edge.requires_grad:
            raise GraphError(
                "element 0 of tensors does not require grad and does not have a grad_fn. "
                "Was it computed from a tensor made with requires_grad=True, and outside no_grad()?"
            )
        client, shape, dtype = self._value.client, self.shape, self._value.spec.dtype
        if gradient is None:
            if self.numel() != 1:
                raise GraphError(
                    f"grad can be implicitly created only for scalar outputs, and this tensor has shape "
                    f"{list(shape)}: pass backward(gradient)"
                )
            gradient = create(client, "full", shape=shape, value=1, dtype=dtype)
        elif not isinstance(gradient, Tensor):
            gradient = upload(client, np.asarray(gradient, dtype))
        if gradient.shape != shape:
            raise ShapeError(
                f"Mismatch in shape: the gradient has shape {list(gradient.shape)} "
                f"and the output has shape {list(shape)}"
            )
        GRAPH.backward(edge, gradient_as(self, gradient), retain_graph)

    def requires_grad_(self, requires_grad: bool = True) -> "Tensor":
        """Make this a leaf that requires a gradient (or not), in place."""
        if isinstance(self._edge, TapeNode):
            if requires_grad:
                return self
            raise GraphError("you can only change requires_grad flags of leaf variables; detach() first")
        if self._edge is None:
            self._edge = leaf(self._value.spec.dtype, requires_grad)
        else:
            self._edge.requires_grad = requires_grad
        return self

    def detach(self) -> "Tensor":
        """The same tensor, outside the graph: an in-place change of one changes the other."""
        return DataView(self)

    def register_hook(self, hook: Hook) -> HookHandle:
        """Call a function with this tensor's gradient when it is computed. If it returns a tensor, that
        replaces the gradient."""
        if self._edge is None or not self._edge.requires_grad:
            raise GraphError("cannot register a hook on a tensor that doesn't require gradient")
        return HookHandle(self._edge, hook)

    def retain_grad(self) -> None:
        """Keep the gradient of a tensor that is not a leaf, too."""
        if isinstance(self._edge, TapeNode):
            self._edge.retains = True

    # --- in place: the tensor gets a new value; ops that read the old one keep it ---

    def _become(self, result: "Tensor") -> "Tensor":
        """Replace the value by a result's: an in-place op."""
        edge = self._edge
        if isinstance(result._edge, TapeNode):
            if isinstance(edge, Leaf) and edge.requires_grad:
                raise GraphError(
                    "a leaf Variable that requires grad is being used in an in-place operation. "
                    "Do it inside no_grad()"
                )
            self._edge = result._edge
        elif isinstance(edge, TapeNode) and is_grad_enabled():
            self._edge = None
        self._value = result._value
        return self

    # --- reading ---

    @property
    def data(self) -> "Tensor":
        """This tensor without its gradient: `x.data.numpy()` reads the values, `x.data += 1` changes them."""
        return DataView(self)

    @data.setter
    def data(self, other: "Tensor") -> None:
        self._replace(other._value)

    def _replace(self, value: Value) -> None:
        """Replace the value. Tensors that shared the old value keep it."""
        self._value = value

    def _set_value(self, value: Value) -> None:
        """Replace the value, outside the graph."""
        self._value = value

    def numpy(self) -> np.ndarray:
        """The values. Waits for them."""
        if self.requires_grad:
            raise GraphError(
                "Can't call numpy() on a tensor that requires grad. Use x.data.numpy() or x.detach().numpy()"
            )
        if self._value.spec.dtype == "bfloat16":
            raise TypeError("NumPy has no bfloat16: read x.float().numpy()")
        return self._fetch()

    def _fetch(self) -> np.ndarray:
        """The values; those of a bfloat16 tensor as float32."""
        array = self._value.client.fetch(self._value.id)
        return array.astype(np.float32) if self._value.spec.dtype == "bfloat16" else array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a tensor's data is elsewhere: reading it always makes a copy")
        array = self._fetch()
        return array if dtype is None else array.astype(dtype, copy=False)

    def item(self) -> Number:
        """The value of a tensor with one element, as a Python number. Waits for it."""
        if self.numel() != 1:
            raise ShapeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self._fetch().item()

    def tolist(self) -> Any:
        """The values as nested lists. Waits for them."""
        return self._fetch().tolist()

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise ShapeError(
                "Boolean value of Tensor with more than one value is ambiguous, and this one has shape "
                f"{list(self.shape)}"
            )
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if dtypes.is_float(self._value.spec.dtype):
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]


def gradient_as(output: Tensor, gradient: Tensor) -> Tensor:
    """A gradient to start a backward pass with: detached, in the dtype of the output.

    PyTorch, too, converts it before any rule or hook gets it.
    """
    start = gradient._value.tensor()
    dtype = output._value.spec.dtype
    return start if start._value.spec.dtype == dtype else start.to(dtype)


TensorBase.kind = Tensor
complete(Tensor)

from gt.tensors.views import DataView  # noqa: E402 - views are tensors, and tensors make views
