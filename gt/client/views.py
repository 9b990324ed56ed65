"""Views: tensors that look at another tensor, and through which that one can be changed.

On the server nothing aliases: every op makes a new value. PyTorch's programs rely on it here and there all
the same (`w[0].zero_()`, `bias.data[n:].fill_(1)`), so the client keeps account: a view knows the tensor it
looks at and how. Changed in place, it puts its new value back; if the other was changed, it looks again.
"""

from typing import Any

from gt.client.autograd import Edge, no_grad, set_grad_enabled
from gt.client.base import TensorBase, Value, apply
from gt.client.tensor import Tensor

DEEPEST = 8
"""How many steps a view may be away from its tensor. Beyond, as in a loop of `x = x.T`, it is on its own."""

Step = tuple[str, dict[str, Any]]


class _Looking(Tensor):
    """A tensor that looks at another."""

    __slots__ = ()

    def _kind_of_copy(self) -> type:
        """A copy is a tensor of its own."""
        return Tensor


class DataView(_Looking):
    """What `x.data` and `x.detach()` are: a tensor that always has x's value, outside the graph."""

    __slots__ = ("owner",)

    def __init__(self, owner: Tensor) -> None:
        self.owner = owner
        self._edge = None

    @property
    def _value(self) -> Value:
        return self.owner._value

    @_value.setter
    def _value(self, value: Value) -> None:
        self.owner._value = value


class View(_Looking):
    """What indexing, reshaping and transposing give: part of a tensor, or its elements in another order."""

    __slots__ = ("_base", "_own", "_path", "_recorded", "_seen")

    def __init__(self, value: Value, edge: Edge | None, base: Tensor, path: tuple[Step, ...]) -> None:
        self._own, self._edge = value, edge
        self._base, self._path = base, path
        self._recorded = edge is not None
        """Whether a gradient flows through it. It stays so, wherever it is looked at again."""
        self._seen = base._value
        """What the tensor was when this was last the same."""

    @property
    def _value(self) -> Value:
        if self._base._value is not self._seen:
            with set_grad_enabled(self._recorded):
                fresh = self._looks()[-1]
            self._own, self._edge, self._seen = fresh._value, fresh._edge, self._base._value
        return self._own

    @_value.setter
    def _value(self, value: Value) -> None:
        self._own = value

    def _take_on(self, value: Value) -> None:
        with no_grad():
            self._become(value.tensor())

    def _looks(self) -> list[Tensor]:
        """The tensor, and what each step of the way makes of it."""
        looks = [self._base]
        for op, attrs in self._path:
            looks.append(apply(op, (looks[-1],), attrs))
        return looks

    def _become(self, result: Tensor) -> Tensor:
        looks, changed = self._looks(), result
        for (op, attrs), before in zip(reversed(self._path), reversed(looks[:-1]), strict=True):
            changed = _put_back(op, attrs, before, changed)
        self._base._become(changed)
        super()._become(result)
        self._seen = self._base._value
        return self


def _put_back(op: str, attrs: dict[str, Any], before: Tensor, changed: Tensor) -> Tensor:
    """What `before` is when what `op` makes of it is `changed`."""
    if op == "getitem":
        return apply("setitem", (before, changed), attrs)
    if op == "reshape":
        return apply("reshape", (changed,), {"shape": before._value.spec.shape})
    if op == "permute":
        dims = attrs["dims"]
        return apply("permute", (changed,), {"dims": tuple(dims.index(dim) for dim in range(len(dims)))})
    return apply("transpose", (changed,), attrs)


def _view_of(x: TensorBase, op: str, attrs: dict[str, Any], result: Tensor) -> Tensor:
    base, path = (x._base, x._path) if isinstance(x, View) else (x, ())
    assert isinstance(base, Tensor)
    if len(path) == DEEPEST:
        return result
    return View(result._value, result._edge, base, (*path, (op, attrs)))


TensorBase.view_of = staticmethod(_view_of)
