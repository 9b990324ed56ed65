"""Executors: for each type of instruction, the function by which a worker executes it.

Op and FreeTensor, which are nearly all instructions, are executed by `Worker.execute_each` itself, for speed.
If a batch is aborted, the executor's `abort` is called for each of its instructions that was not executed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gt.errors import WorkerError
from gt.stream.instructions import (
    Boundary,
    CreateTensor,
    Exchange,
    GetData,
    Lost,
    Op,
    ShardOp,
    Signal,
    Site,
    Upload,
)
from gt.stream.repeats import Repeat
from gt.transport.arrays import numpy_dtype
from gt.transport.protocol import Failed, Fetched
from gt.worker.client_state import ClientState
from gt.worker.collectives.exchange import exchange, send_error

if TYPE_CHECKING:
    from gt.worker.limits.memory import Limit
    from gt.worker.worker import Worker


class Execution(NamedTuple):
    """The batch that is executed: its worker and client, its memory limit, and its outcome so far."""

    worker: "Worker"
    state: ClientState
    failed: list[Failed]
    data: list[Fetched]
    limit: "Limit | None" = None


Execute = Callable[[Execution, Any], None]
Abort = Callable[[Execution, Any, str], None]


def _nothing(run: Execution, instruction: Any, why: str = "") -> None:
    """Do nothing: the instruction is for the dispatcher or for detectors."""


class Executor(NamedTuple):
    """The functions that execute a type of instruction, and that abort it if its batch is aborted.

    In addition, the tensors that an aborted instruction would have made become failures.
    """

    execute: Execute
    abort: Abort = _nothing


def _get_data(run: Execution, instruction: GetData) -> None:
    state, worker = run.state, run.worker
    try:
        array = worker.engine.get(state.values[instruction.tensor])
        if instruction.part is not None and array.shape != instruction.part.shape:
            raise ValueError(
                f"this part of the tensor is {list(array.shape)}, not {list(instruction.part.shape)}"
            )
        run.data.append(Fetched(instruction.request, array, None, instruction.part))
    except Exception as error:  # noqa: BLE001 - any error of an engine is sent to the client, as a value
        cause = state.failures.get(instruction.tensor) or worker.message("reading the data", error)
        run.data.append(Fetched(instruction.request, None, cause, instruction.part))


def _abort_get_data(run: Execution, instruction: GetData, why: str) -> None:
    run.data.append(Fetched(instruction.request, None, why, instruction.part))


def _upload(run: Execution, instruction: Upload) -> None:
    try:
        if run.limit is not None:
            run.limit.check(instruction.array.nbytes)
        run.state.values[instruction.result] = run.worker.engine.put(instruction.array)
    except Exception as error:  # noqa: BLE001 - as above
        array = instruction.array
        what = f"uploading <{array.dtype} {list(array.shape)}, {array.nbytes} bytes>"
        run.failed.append(run.worker.fail(run.state, instruction.result, what, error))


def _create(run: Execution, instruction: CreateTensor) -> None:
    """Create a tensor from bytes in the instruction itself, such as one that a modifier has injected."""
    array = instruction.array
    try:
        if instruction.part is not None or array.shared or not isinstance(array.data, bytes):
            raise ValueError("its bytes are not in the instruction")
        if len(array.data) != array.nbytes:
            raise ValueError(f"{array!r} comes with {len(array.data)} bytes")
        data = np.frombuffer(bytearray(array.data), numpy_dtype(array.dtype)).reshape(array.shape)
    except Exception as error:  # noqa: BLE001 - as above
        run.failed.append(run.worker.fail(run.state, instruction.result, "an upload", error))
        return
    _upload(run, Upload(instruction.result, data))


def _site(run: Execution, instruction: Site) -> None:
    run.state.sites[instruction.number] = instruction


def _lost(run: Execution, instruction: Lost) -> None:
    run.state.failures.update(dict.fromkeys(instruction.tensors, instruction.error))


def _repeat(run: Execution, repeat: Repeat) -> None:
    run.worker.repeats.run(run.state, repeat, run.failed, run.data, run.limit is not None)


def _exchange(run: Execution, instruction: Exchange) -> None:
    """Take part in an exchange, even with nothing to send: other workers wait for this one."""
    worker, state, peers = run.worker, run.state, run.worker.peers
    worker.exchanged.add(instruction.number)
    try:
        if peers is None:
            raise RuntimeError("this worker has no connections to other workers")
        sends = peers.name in instruction.source.workers
        own, error = _own_part(worker, state, instruction) if sends else (None, None)
        result = exchange(instruction, own, error, peers)
        if result is not None:
            if worker.limit is not None:
                worker.limit.check(result.nbytes)
            state.values[instruction.result] = worker.engine.put(result)
    except WorkerError as cause:
        state.failures[instruction.result] = str(cause)
        run.failed.append(Failed(instruction.result, str(cause)))
    except Exception as error:  # noqa: BLE001 - as above
        run.failed.append(worker.fail(state, instruction.result, instruction.kind, error))


def _own_part(
    worker: "Worker", state: ClientState, instruction: Exchange
) -> tuple[np.ndarray | None, str | None]:
    """The array that this worker sends in an exchange, or the reason why it has none."""
    if instruction.tensor not in state.values:
        missing = f"Tensor not found: there is no tensor {instruction.tensor}"
        return None, state.failures.get(instruction.tensor, missing)
    try:
        array = worker.engine.get(state.values[instruction.tensor])
        index = instruction.source.workers.index(worker.name)
        expected = instruction.source.local_shape(index, instruction.shape)
        if array.shape == expected and array.dtype.name == instruction.dtype:
            return array, None
        found = f"{array.dtype}{list(array.shape)}"
        return None, f"{instruction.kind} on {worker.name}: {found} is not {list(expected)}"
    except Exception as error:  # noqa: BLE001 - as above; and the other workers must get it
        return None, worker.message(instruction.kind, error)


def _abort_exchange(run: Execution, instruction: Exchange, why: str) -> None:
    """Send the error to the workers that wait, unless this one has taken part already."""
    if run.worker.peers is not None and instruction.number not in run.worker.exchanged:
        send_error(instruction, why, run.worker.peers)


def _shard_op(run: Execution, instruction: ShardOp) -> None:
    """Slice a tensor of which this worker has all."""
    index: list[Any] = [*[[0, 1 << 62, 1]] * instruction.axis, [instruction.start, instruction.stop, 1]]
    op = Op(instruction.result, "getitem", (instruction.tensor,), {"index": index}, -1)
    values = run.state.values
    try:
        values[instruction.result] = run.worker.engine.run("getitem", [values[instruction.tensor]], op.attrs)
    except Exception as error:  # noqa: BLE001 - as above
        run.failed.append(run.worker.op_failed(run.state, op, error))


EXECUTORS: dict[type, Executor] = {
    GetData: Executor(_get_data, _abort_get_data),
    Upload: Executor(_upload),
    CreateTensor: Executor(_create),
    Site: Executor(_site),
    Lost: Executor(_lost),
    Repeat: Executor(_repeat),
    Exchange: Executor(_exchange, _abort_exchange),
    ShardOp: Executor(_shard_op),
    Signal: Executor(_nothing),
    Boundary: Executor(_nothing),
}
