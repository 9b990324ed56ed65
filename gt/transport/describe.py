"""Instructions in words, as the tape and the debug output write them."""

from collections.abc import Sequence
from typing import NamedTuple

from gt import config
from gt.ops import TABLE
from gt.transport import protocol
from gt.transport.layouts import Placement, Sharded
from gt.transport.protocol import (
    Boundary,
    CreateTensor,
    Exchange,
    GetData,
    LocalInstruction,
    Lost,
    Op,
    ShardOp,
    Signal,
    Site,
    Upload,
    WorkerHotPathEnd,
    WorkerHotPathStart,
)
from gt.transport.repeats import SEVERAL, flat


class Described(NamedTuple):
    """A CreateTensor without its data: the tape must not keep that alive."""

    result: int
    shape: tuple[int, ...]
    dtype: str
    nbytes: int


class Laid(NamedTuple):
    """How a tensor lies over the workers, from now on."""

    result: int
    shape: tuple[int, ...]
    dtype: str
    placement: Placement


class LaidAgain(NamedTuple):
    """Tensors lie as others did before: the same as a Laid for each of them."""

    laid: Sequence[tuple[int, tuple[int, ...], str, Placement]]
    """Of each tensor which of the numbers it has, its shape, its dtype, and how it lies."""
    numbers: Sequence[int]

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.laid)

    def expanded(self) -> list[Laid]:
        """Each by itself."""
        return [Laid(self.numbers[n], shape, dtype, placement) for n, shape, dtype, placement in self.laid]


SEVERAL.add(LaidAgain)
_WITH_DATA = {Upload, CreateTensor}


def without_data(instructions: Sequence[LocalInstruction]) -> "Sequence[LocalInstruction | Described]":
    """The same instructions, holding no tensor's data alive."""
    if _WITH_DATA.isdisjoint(map(type, instructions)):
        return instructions
    return [_without_data(instruction) for instruction in instructions]


def _without_data(instruction: LocalInstruction) -> LocalInstruction | Described:
    if isinstance(instruction, Upload | CreateTensor):
        array = instruction.array
        dtype = array.dtype if isinstance(array.dtype, str) else array.dtype.name
        part = instruction.part if isinstance(instruction, CreateTensor) else None
        shape = array.shape if part is None else part.shape
        return Described(instruction.result, shape, dtype, array.nbytes)
    return instruction


def tensor_of(instruction: LocalInstruction | Described | Laid) -> int:
    """The tensor an instruction is about."""
    if isinstance(instruction, int):
        return instruction
    if isinstance(instruction, GetData):
        return instruction.tensor
    return getattr(instruction, "result", -1)


def describe(instruction: LocalInstruction | Described | Laid, physical: str) -> tuple[str, str, str]:
    """What the tape calls an instruction, which tensor it is about, and the rest."""
    if isinstance(instruction, int):
        return "FreeTensor", f"tensor_id={physical}{instruction}", ""
    if isinstance(instruction, Op):
        return _describe_op(instruction, physical)
    match instruction:
        case Described(result, shape, dtype):
            return "CreateTensor", f"tensor_id={physical}{result}", f"shape={_field(shape)} dtype={dtype}"
        case Laid(result, shape, dtype, placement):
            rest = f"shape={_field(shape)} dtype={dtype} layout={placement}"
            if isinstance(placement.layout, Sharded) and placement.layout.sizes:
                rest += f" parts={','.join(map(str, placement.layout.sizes))}"
            return "Layout", f"tensor_id={physical}{result}", rest
        case GetData(request, tensor):
            return "GetData", f"tensor_id={physical}{tensor}", f"request={request}"
        case ShardOp(tensor, count, axis, start, stop, result):
            rest = f"input={physical}{tensor} num_shards={count} axis={axis} start={start} stop={stop}"
            return "ShardOp", f"result={physical}{result}", rest
        case Exchange():
            rest = (
                f"input={physical}{instruction.tensor} shape={_field(instruction.shape)} "
                f"from={instruction.source} to={instruction.target} number={instruction.number}"
            )
            return instruction.kind, f"result={physical}{instruction.result}", rest
        case Signal(tensor, name, layout, workers):
            where = f"layout={layout} workers={_field(workers) if workers else 'all'}"
            return "Signal", f"tensor_id={physical}{tensor}", f"signal={name} {where}"
        case Site(number, where):
            return "Site", f"site={number}", f"at={where}"
        case Boundary(name, begins):
            return "Boundary", f"signal={name}", f"begins={begins}"
        case WorkerHotPathStart(sequence):
            return "HotPathStart", f"sequence={sequence}", ""
        case WorkerHotPathEnd(sequence, complete):
            return "HotPathEnd", f"sequence={sequence} complete={complete}", ""
        case Lost(tensors, error):
            return "Lost", f"tensors={len(tensors)}", f"ERROR {error}"
    return type(instruction).__name__, "", ""


def _describe_op(instruction: Op, physical: str) -> tuple[str, str, str]:
    op, inputs, attrs = instruction.op, instruction.inputs, instruction.attrs
    row = TABLE.get(op)
    kind = row.kind if row is not None else "Op"
    key = "tensor_id" if kind == "CreateTensor" else "result"
    if len(inputs) == 2:
        rest = f"op={op} left={physical}{inputs[0]} right={physical}{inputs[1]}"
    else:
        rest = " ".join([f"op={op}", *[f"input={physical}{tensor}" for tensor in inputs]])
    if attrs:
        rest = " ".join([rest, *[f"{name}={_field(value)}" for name, value in attrs.items()]])
    return kind, f"{key}={physical}{instruction.result}", rest


def size_of(instruction: LocalInstruction | Described | Laid) -> int:
    """How many bytes an instruction takes when it travels."""
    if isinstance(instruction, Laid):
        return 0  # it does not
    if isinstance(instruction, Described):
        return instruction.nbytes
    return len(protocol.encode(instruction))


def _field(value: object) -> str:
    """A value without spaces: a shape is `128x64`, and that of a number `()`."""
    return "x".join(map(str, value)) or "()" if isinstance(value, list | tuple) else str(value)


def in_words(instruction: LocalInstruction) -> str:
    """One instruction as a line: `BinaryOp result=2 op=add left=0 right=1`."""
    return " ".join(part for part in describe(_without_data(instruction), "") if part)


def debug(layer: str, instructions: Sequence[LocalInstruction], prefix: str = "") -> None:
    """Print instructions as a layer sees them, if the user asked for that layer.

    Called once a batch: looking up an environment variable costs more than carrying out a small op.
    """
    if config.flag(f"GT_DEBUG_{layer.upper()}"):
        for instruction in flat(instructions):
            config.debug(layer, prefix + in_words(instruction))
