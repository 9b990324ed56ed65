"""Views: tensors that share the value of another tensor, their base: an in-place change of one changes both.

On the server nothing aliases: every op makes a new value. PyTorch programs rely on aliasing in places
(`w[0].zero_()`, `bias.data[n:].fill_(1)`), so the client emulates it: a view has its base and the ops that
created it. An in-place change of a view is written back to the base; a view whose base was changed is
computed again when it is next used. The column `put_back` of the op table names the ops that create views.
"""

from typing import Any

from gt.autograd.graph import Edge, no_grad, set_grad_enabled
from gt.ops import TABLE
from gt.tensors.base import TensorBase, Value, apply
from gt.tensors.tensor import Tensor

MAX_VIEW_OPS = 8
"""The largest number of ops between a view and its base. A result with more, as in a loop of `x = x.T`, is
not a view."""

Step = tuple[str, dict[str, Any]]


class _Alias(Tensor):
    """A tensor that shares another's value."""

    __slots__ = ()

    def _class_of_copy(self) -> type:
        """The class of a copy, which is not a view."""
        return Tensor


class DataView(_Alias):
    """The result of `x.data` and `x.detach()`: a tensor that always has x's value, outside the graph."""

    __slots__ = ("owner",)

    def __init__(self, owner: Tensor) -> None:
        self.owner = owner
        self._edge = None

    @property
    def _value(self) -> Value:
        return self.owner._value

    @_value.setter
    def _value(self, value: Value) -> None:
        # As the owner's own change, outside the graph: one of a view is written back to its base.
        self.owner._set_value(value)


class View(_Alias):
    """The result of indexing, reshaping and transposing: a part of a tensor, or another order of it."""

    __slots__ = ("_base", "_own", "_path", "_recorded", "_seen")

    def __init__(self, value: Value, edge: Edge | None, base: Tensor, path: tuple[Step, ...]) -> None:
        self._own, self._edge = value, edge
        self._base, self._path = base, path
        self._recorded = edge is not None
        """Whether it is recorded for autograd; also whenever it is computed again."""
        self._seen = base._value
        """The base's value that `_own` was computed from."""

    @property
    def _value(self) -> Value:
        if self._base._value is not self._seen:
            with set_grad_enabled(self._recorded):
                fresh = self._chain()[-1]
            self._own, self._edge, self._seen = fresh._value, fresh._edge, self._base._value
        return self._own

    @_value.setter
    def _value(self, value: Value) -> None:
        self._own = value

    def _replace(self, value: Value) -> None:
        self._base, self._path = value.tensor(), ()
        self._own = self._seen = value

    def _set_value(self, value: Value) -> None:
        with no_grad():
            self._become(value.tensor())

    def _chain(self) -> list[Tensor]:
        """The base, and the result of each op on the way to this view."""
        results = [self._base]
        for op, attrs in self._path:
            results.append(apply(op, (results[-1],), attrs))
        return results

    def _become(self, result: Tensor) -> Tensor:
        results, changed = self._chain(), result
        for (op, attrs), before in zip(reversed(self._path), reversed(results[:-1]), strict=True):
            changed = _put_back(op, attrs, before, changed)
        self._base._become(changed)
        super()._become(result)
        self._seen = self._base._value
        return self


def _put_back(op: str, attrs: dict[str, Any], before: Tensor, changed: Tensor) -> Tensor:
    """`before` with the change that turned the result of `op` on it into `changed`."""
    put_back = TABLE[op].put_back
    assert put_back is not None  # only such ops make views
    return apply(*put_back(attrs, before, changed))


def _view_of(x: TensorBase, op: str, attrs: dict[str, Any], result: Tensor) -> Tensor:
    base, path = (x._base, x._path) if isinstance(x, View) else (x, ())
    assert isinstance(base, Tensor)
    if len(path) == MAX_VIEW_OPS:
        return result
    return View(result._value, result._edge, base, (*path, (op, attrs)))


TensorBase.view_of = staticmethod(_view_of)
