"""Ops that access memory: loads, stores, atomics, and ops on descriptors, which use loads and stores."""

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import triton.language as tl

from triton_viz.core.data import Atomic, Load, Store
from triton_viz.dsls.triton.ops import adapters
from triton_viz.dsls.triton.ops.op_traits import not_recorded, recorded_as
from triton_viz.dsls.triton.ops.types import ADDRESS, Atomically, memory_dtype, narrow_name, to_memory, width
from triton_viz.executor import atomics
from triton_viz.executor.address_origin import Origin, joined
from triton_viz.executor.affine import Affine, Box
from triton_viz.executor.lanes import RunOneByOne, of_active
from triton_viz.executor.memory import Mask, Memory, effective
from triton_viz.executor.value import Value
from triton_viz.numerics import floats

if TYPE_CHECKING:
    from triton_viz.executor.lanes import Lanes


class Descriptor:
    """A tensor descriptor: a base, and for each axis a size, a stride and a block size."""

    def __init__(
        self,
        base: Value,
        shape: list[Value],
        strides: list[Value],
        block: list[int],
        padding: Any = None,
    ):
        self.base, self.shape, self.strides = base, shape, strides
        self.block = tuple(int(n) for n in block)
        self.padding = padding
        self.round_f32_to_tf32 = False

    def pointers(self, offsets: list[Value], checked: tuple[int, ...] | None = None) -> tuple[Value, Value]:
        """The addresses of a block, and which of them are inside along the checked axes (None: all)."""
        size = width(self.base.dtype)
        base = self.base.data.astype(np.int64)
        bounds: list[Any] = []
        steps = []
        for axis, (offset, stride) in enumerate(zip(offsets, self.strides, strict=True)):
            by = stride.data.astype(np.int64)
            if len(by) > 1 and (by == by[0]).all():
                by = by[:1]
            if len(by) > 1:
                return self._gathered(offsets, checked)
            start = offset.data.astype(np.int64)
            base = base + start * (by * size)
            steps.append(int(by[0]) * size)
            if checked is None or axis in checked:
                limit = self.shape[axis].data.astype(np.int64)
                n = self.block[axis]
                low, high = np.clip(-start, 0, n), np.clip(limit - start, 0, n)
                inside = low.max() == 0 and high.min() == n
                bounds.append(None if inside else np.broadcast_arrays(low, high))
            else:
                bounds.append(None)
        form = Affine(base, tuple(steps), self.block, 0, 0)
        mask = Box(tuple(b if b is None else (b[0], b[1]) for b in bounds), self.block)
        pointers = Value(None, self.base.dtype, affine=form, np_dtype=ADDRESS, origin=self._origin)
        return pointers, Value(None, tl.int1, box=mask)

    def _gathered(self, offsets: list[Value], checked: tuple[int, ...] | None) -> tuple[Value, Value]:
        """`pointers` for descriptors whose strides differ between lanes."""
        size, rank = width(self.base.dtype), len(self.block)
        address = self.base.data.astype(np.int64).reshape(-1, *(1,) * rank)
        inside: np.ndarray = np.ones((1,) * (rank + 1), bool)
        for axis, n in enumerate(self.block):
            along = np.arange(n).reshape(1, *(1,) * axis, n, *(1,) * (rank - axis - 1))

            def column(value: Value) -> np.ndarray:
                return value.data.astype(np.int64).reshape(-1, *(1,) * rank)

            index = column(offsets[axis]) + along
            address = address + index * column(self.strides[axis]) * size
            if checked is None or axis in checked:
                inside = inside & (index >= 0) & (index < column(self.shape[axis]))
        whole = (len(address), *self.block)
        pointers = Value(address, self.base.dtype, origin=self._origin)
        return pointers, Value(np.broadcast_to(inside, whole), tl.int1)

    @property
    def _origin(self) -> Origin | None:
        """The origin of a block's pointers: that of the base."""
        return None if self.base.origin is None else self.base.origin.of_rank(len(self.block))


class AccessOps:
    """The builder's ops on memory. Only masked loads and stores, which the others call, leave records."""

    memory: Memory
    lanes: "Lanes"
    track_origins: Callable[[], None]
    """Called when an integer that may be an address was loaded."""
    log: list[Callable[[], None]] | None
    on_waiting_op: Callable[[], None]
    on_write: Callable[[], None]
    bytes_per_lane: int
    """The size of the largest loaded block, which determines the size of chunks."""
    _mask_override: tuple[Mask] | None = None
    """The mask that replaces that of the next access."""

    @contextlib.contextmanager
    def masked_by(self, mask: Mask) -> Iterator[None]:
        """While inside, the access has this mask, active lanes included."""
        self._mask_override = (mask,)
        try:
            yield
        finally:
            self._mask_override = None

    def _kept(self, mask: Value | None, shape: tuple[int, ...]) -> Mask:
        """The effective mask of an access."""
        return (
            effective(mask, self.lanes.active, shape)
            if self._mask_override is None
            else self._mask_override[0]
        )

    # --- loads and stores ---

    @not_recorded
    def create_load(self, pointers: Value, *policy: Any) -> Value:
        """The values at the pointers."""
        is_volatile = bool(policy) and policy[-1] is True
        return self.create_masked_load(pointers, None, None, None, is_volatile)

    @not_recorded
    def create_store(self, pointers: Value, values: Value, *policy: Any) -> None:
        """Write to all pointers."""
        self.create_masked_store(pointers, values, None)

    @recorded_as(Load, adapters.load)
    def create_masked_load(
        self,
        pointers: Value,
        mask: Value | None,
        other: Value | None,
        *policy: Any,
    ) -> Value:
        """The values at the pointers where the mask is true; elsewhere `other`, or 0."""
        if policy and (policy[-1] is True or isinstance(policy[-1], Atomically)):
            self.on_waiting_op()  # volatile: another program may change it
        dtype = pointers.dtype.element_ty
        narrow = narrow_name(dtype)
        keep = self._kept(mask, pointers.shape)
        fill = None
        lanes = pointers.lanes
        if keep is not None:
            lanes = max(lanes, keep.lanes if isinstance(keep, Box) else len(keep))
            if other is not None:
                fill = floats.pack(other.data, narrow) if narrow else other.data
                lanes = max(lanes, len(fill))
        found = self.memory.load(pointers, keep, fill, memory_dtype(dtype), lanes)
        self.bytes_per_lane = max(self.bytes_per_lane, found.nbytes // len(found))
        if narrow:
            return Value(floats.decode(found, narrow), dtype)
        return Value(found, dtype, origin=self._loaded(found, keep, other))

    def _loaded(self, found: np.ndarray, keep: Mask, other: Value | None = None) -> Origin | None:
        """The origin of a load's result: of the loaded values, and of `other` where the mask is false."""
        if found.dtype.kind not in "iu" or found.dtype.itemsize != 8:
            return None
        kept = keep.data() if isinstance(keep, Box) else keep
        origin = joined(Origin.loaded(found, kept), None if other is None else other.origin)
        if origin is not None:
            self.track_origins()
        return origin

    @recorded_as(Store, adapters.store)
    def create_masked_store(self, pointers: Value, values: Value, mask: Value | None, *policy: Any) -> None:
        """Write to the pointers where the mask is true."""
        dtype = pointers.dtype.element_ty
        keep = self._kept(mask, pointers.shape)
        data = to_memory(values, dtype)
        masked = 1 if keep is None else keep.lanes if isinstance(keep, Box) else len(keep)
        self.on_write()
        self.memory.store(pointers, keep, data, max(pointers.lanes, len(data), masked), self.log)

    # --- atomics ---

    @recorded_as(Atomic, adapters.atomic)
    def create_atomic_rmw(
        self, op: Any, pointers: Value, values: Value, mask: Value | None, *order: Any
    ) -> Value:
        """Read, change and write in one step; the result is the value before."""
        return self._atomic(str(op).rsplit(".", 1)[-1], pointers, (values,), mask)

    @recorded_as(Atomic, adapters.compare_and_swap)
    def create_atomic_cas(self, pointers: Value, expected: Value, values: Value, *order: Any) -> Value:
        """Write where memory holds the expected value; the result is the value before."""
        return self._atomic("CAS", pointers, (expected, values), None)

    @not_recorded
    def create_atomic_load(self, pointers: Value, mask: Value | None, *order: Any) -> Value:
        """An atomic load, by which a program may wait for another program's store."""
        return self.create_masked_load(pointers, mask, None, Atomically(order))

    @not_recorded
    def create_atomic_store(self, pointers: Value, values: Value, mask: Value | None, *order: Any) -> None:
        """An atomic store, for which another program may wait."""
        self.create_masked_store(pointers, values, mask, Atomically(order))

    @not_recorded
    def create_atomic_poll(
        self, pointers: Value, expected: Value, timeout: Value | None, *order: Any
    ) -> Value:
        """Wait for a value. Lanes cannot wait for each other: if one has to, programs run one by one."""
        found = self.create_masked_load(pointers, None, None, Atomically(order))
        matched = found.data == expected.data
        if not matched.all():
            if self.lanes.count > 1:
                raise RunOneByOne("tl.atomic_poll waits for another program")
            if timeout is not None:
                return Value(matched, tl.int1)
            raise RuntimeError(
                "tl.atomic_poll waits for a value that no program before this one has written: on a CPU "
                "programs run one after the other"
            )
        return Value(matched, tl.int1)

    def _atomic(self, op: str, pointers: Value, operands: tuple[Value, ...], mask: Value | None) -> Value:
        dtype = pointers.dtype.element_ty
        self.on_waiting_op()
        whole = (self.lanes.count, *pointers.shape)
        keep = self._kept(mask, pointers.shape)
        kept = np.broadcast_to(
            True if keep is None else keep.data() if isinstance(keep, Box) else keep, whole
        )
        np_dtype = memory_dtype(dtype)
        addresses = np.broadcast_to(pointers.data, whole)[kept]
        given = tuple(np.broadcast_to(x.data, whole)[kept] for x in operands)
        self.memory.check(addresses, np_dtype.itemsize, kept, pointers.origin)
        result = np.zeros(whole, operands[-1].data.dtype)
        if addresses.size:
            narrow = narrow_name(dtype)

            def read(at: np.ndarray) -> np.ndarray:
                found = self.memory.gather(at, np_dtype)
                return floats.decode(found, narrow) if narrow else found

            def write(at: np.ndarray, new: np.ndarray) -> None:
                bits = floats.pack(new, narrow) if narrow else new.astype(np_dtype, copy=False)
                if (bits != self.memory.gather(at, np_dtype)).any():  # else nothing was changed
                    self.on_write()
                    self.memory.scatter(at, bits, self.log)

            rounded = (lambda x: floats.round_to(x, narrow)) if narrow else None
            result[kept] = atomics.apply(op, addresses, given, read, write, rounded)
        return Value(result, operands[-1].dtype.scalar, origin=self._loaded(result, kept))

    # --- tensor descriptors ---

    @not_recorded
    def create_make_tensor_descriptor(
        self,
        base: Value,
        shape: list[Value],
        strides: list[Value],
        block: list[int],
        is_signed: bool,
        padding: Any = None,
    ) -> Descriptor:
        """A descriptor made in a kernel or on the host."""

        def own(value: Value) -> np.ndarray:
            return of_active(value.data, self.lanes)  # other lanes may hold anything

        if (own(base) % 16).any():
            raise ValueError("a tensor descriptor's base must be aligned to 16 bytes")
        size = width(base.dtype)
        if any(((own(stride) * size) % 16).any() for stride in strides[:-1]):
            raise ValueError("a tensor descriptor's strides must be multiples of 16 bytes")
        if (own(strides[-1]) != 1).any():
            raise ValueError("a tensor descriptor's last axis must be contiguous")
        return Descriptor(base, shape, strides, block, padding)

    @not_recorded
    def create_descriptor_load(self, descriptor: Descriptor, offsets: list[Value], *policy: Any) -> Value:
        """A block of the described tensor, with padding outside of it."""
        loaded = self.load_block(descriptor, offsets, descriptor.padding)
        if descriptor.round_f32_to_tf32 and loaded.data.dtype == np.float32:
            return Value(floats.round_to_tf32(loaded.data), loaded.dtype)
        return loaded

    def load_block(
        self, block: Descriptor, offsets: list[Value], padding: Any, checked: tuple[int, ...] | None = None
    ) -> Value:
        """The values of a block, with padding for elements outside along the checked axes (None: all)."""
        pointers, mask = block.pointers(offsets, checked)
        return self.create_masked_load(pointers, mask, _padding(pointers, padding), None, False)

    @not_recorded
    def create_descriptor_store(self, descriptor: Descriptor, value: Value, offsets: list[Value]) -> None:
        """Write the elements of a block that are inside of the described tensor."""
        pointers, mask = descriptor.pointers(offsets)
        self.create_masked_store(pointers, value, mask)

    @not_recorded
    def create_descriptor_reduce(
        self, op: Any, descriptor: Descriptor, value: Value, offsets: list[Value]
    ) -> None:
        """An atomic on each element of a block."""
        pointers, mask = descriptor.pointers(offsets)
        self.create_atomic_rmw(op, pointers, value, mask)

    @not_recorded
    def create_descriptor_gather(
        self, descriptor: Descriptor, rows: Value, column: Value, type: Any, *policy: Any
    ) -> Value:
        """The rows with these indices, from one column on."""
        pointers, mask = self._rows(descriptor, rows, column)
        return self.create_masked_load(pointers, mask, None, None, False)

    @not_recorded
    def create_descriptor_scatter(
        self, descriptor: Descriptor, value: Value, rows: Value, column: Value
    ) -> None:
        """Write the rows with these indices, from one column on."""
        pointers, mask = self._rows(descriptor, rows, column)
        self.create_masked_store(pointers, value, mask)

    def _rows(self, descriptor: Descriptor, rows: Value, column: Value) -> tuple[Value, Value]:
        def scalar(value: Value) -> np.ndarray:
            return value.data.astype(np.int64).reshape(-1, 1, 1)

        row = rows.data.astype(np.int64)[:, :, None]
        at = scalar(column) + np.arange(descriptor.block[-1])
        size = width(descriptor.base.dtype)
        steps = [scalar(stride) * size for stride in descriptor.strides]
        address = scalar(descriptor.base) + row * steps[0] + at * steps[1]
        inside = (
            (row >= 0) & (row < scalar(descriptor.shape[0])) & (at >= 0) & (at < scalar(descriptor.shape[1]))
        )
        origin = descriptor.base.origin
        pointers = Value(
            address,
            descriptor.base.dtype,
            origin=None if origin is None else origin.of_rank(address.ndim - 1),
        )
        return pointers, Value(np.broadcast_to(inside, address.shape), tl.int1)


def _padding(pointers: Value, padding: Any) -> Value | None:
    if padding is not None and "NAN" in str(padding).upper():
        return Value(np.full((1,) * (1 + len(pointers.shape)), np.nan, np.float32), pointers.dtype.element_ty)
    return None
