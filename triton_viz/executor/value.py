"""A value of a running kernel: one block (or scalar) per lane."""

from typing import Any, Self

import numpy as np

from triton_viz.executor.address_origin import Origin
from triton_viz.executor.affine import Affine, Box


class Handle:
    """The methods that a language layer calls on every value: compiler hints and types."""

    __slots__ = ("attr", "dtype")

    def __init__(self, dtype: Any):
        self.dtype = dtype
        """The language's type of an element."""
        self.attr: dict[str, Any] | None = None

    def set_attr(self, name: str, value: Any) -> None:
        """Store a hint to the compiler, which has no effect."""
        self.attr = {**(self.attr or {}), name: value}

    def get_element_ty(self) -> Any:
        """The type at the end of a pointer, or the element's own."""
        dtype = self.dtype
        while hasattr(dtype, "element_ty"):
            dtype = dtype.element_ty
        return dtype

    def clone(self) -> Self:
        """Itself: values are immutable."""
        return self


class Value(Handle):
    """The value of a tensor of the language while a grid runs.

    `data` is an array of shape (L, *shape), L being the number of lanes, or 1 where all lanes agree. It is
    computed on first use if the value has a compact form. It is never written to.
    """

    __slots__ = ("_data", "affine", "box", "np_dtype", "origin", "shape")

    def __init__(
        self,
        data: np.ndarray | None,
        dtype: Any,
        affine: Affine | None = None,
        box: Box | None = None,
        np_dtype: np.dtype | None = None,
        origin: Origin | None = None,
    ):
        super().__init__(dtype)
        self._data = data
        self.affine = affine
        """These integers or pointers in their compact form, if they have one."""
        self.box = box
        """This mask in its compact form, if it has one."""
        self.np_dtype = np_dtype
        """NumPy's type of an affine value's elements."""
        self.origin = origin
        """The loaded integers that it depends on, if one of them may be an address."""
        form = affine or box
        self.shape: tuple[int, ...] = form.shape if form is not None else data.shape[1:]  # type: ignore[union-attr]
        """The block's shape, without the lane axis."""

    @property
    def data(self) -> np.ndarray:
        """The elements, of shape (L, *shape)."""
        if self._data is None:
            if self.affine is not None:
                data = self.affine.data()
                self._data = data if self.np_dtype is None else data.astype(self.np_dtype, copy=False)
            else:
                assert self.box is not None
                self._data = self.box.data()
        return self._data

    @property
    def lanes(self) -> int:
        """The length of the lane axis: 1 if the lanes agree."""
        if self._data is not None:
            return len(self._data)
        return len(self.affine.base) if self.affine is not None else self.box.lanes  # type: ignore[union-attr]

    @property
    def numbers(self) -> Affine | None:
        """The compact form of integers; a scalar always has one."""
        if (
            self.affine is None
            and not self.shape
            and self._data is not None
            and self._data.dtype.kind in "iu"
        ):
            if self._data.dtype == np.uint64 and self._data.max() > 2**62:
                return None
            self.affine = Affine.of_scalar(self._data)
            self.np_dtype = self._data.dtype
        return self.affine

    def at(self, lane: int) -> np.ndarray:
        """The block of one lane."""
        if self._data is not None:
            return self._data[lane if len(self._data) > 1 else 0]
        if self.affine is not None:
            block = self.affine.at(lane)
            return block if self.np_dtype is None else block.astype(self.np_dtype, copy=False)
        return self.box.at(lane)  # type: ignore[union-attr]
