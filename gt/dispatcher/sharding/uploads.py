"""Uploads to several workers: each gets its part."""

import math

import msgspec
import numpy as np

from gt.ops import Spec
from gt.ops.dtypes import ITEMSIZE
from gt.stream.instructions import ArrayData, CreateTensor, Instruction, Op, Part, Placed, Upload
from gt.stream.layouts import Box, Partial, Placement
from gt.transport.arrays import numpy_dtype


def upload_parts(cmd: CreateTensor | Upload, spec: Spec, placement: Placement) -> Placed:
    """The instructions that upload an array with this placement."""
    shape, workers = tuple(spec.shape), placement.workers
    if isinstance(placement.layout, Partial):
        return Placed(workers, (cmd, *[zeros(cmd.result, spec)] * (len(workers) - 1)))
    if placement.whole:
        return Placed(workers, (cmd,) * len(workers))
    boxes = [placement.box(index, shape) for index in range(len(workers))]
    return Placed(workers, tuple(_part(cmd, box, shape) for box in boxes))


def zeros(number: int, spec: Spec) -> Op:
    """The instruction that makes a tensor of zeros."""
    return Op(number, "full", (), {"shape": list(spec.shape), "value": 0, "dtype": spec.dtype}, 0)


def _part(cmd: CreateTensor | Upload, box: Box, shape: tuple[int, ...]) -> Instruction | Upload:
    if isinstance(cmd, Upload):
        return Upload(cmd.result, np.ascontiguousarray(cmd.array[_slices(box)]))
    array = cmd.array
    if isinstance(array.data, bytes) and not array.shared:
        if len(array.data) != math.prod(shape) * ITEMSIZE[array.dtype]:
            return cmd  # the worker reports the error
        whole = np.frombuffer(array.data, numpy_dtype(array.dtype)).reshape(shape)
        return CreateTensor(cmd.result, ArrayData(box.shape, array.dtype, whole[_slices(box)].tobytes()))
    return CreateTensor(cmd.result, array, Part(box.start, box.shape, shape, 1))


def _slices(box: Box) -> tuple[slice, ...]:
    return tuple(slice(a, b) for a, b in zip(box.start, box.stop, strict=True))


def cut_frame(cmd: CreateTensor, frame: memoryview) -> tuple[CreateTensor, memoryview]:
    """A part of an array whose bytes are behind the message, with only the bytes of that part."""
    array, part = cmd.array, cmd.part
    if part is None or len(frame) != array.nbytes:
        return cmd, frame
    whole = np.frombuffer(frame, numpy_dtype(array.dtype)).reshape(array.shape)
    own = np.ascontiguousarray(whole[part.slices]).reshape(-1).view(np.uint8)
    cut = msgspec.structs.replace(array, shape=part.shape)
    return CreateTensor(cmd.result, cut), own.data
