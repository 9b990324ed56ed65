"""Executors: for each type of instruction, the function by which a worker executes it.

Op and FreeTensor, which are nearly all instructions, are executed by `Worker.carry_out` itself, for speed. An
instruction that a worker did not get to, because its batch was aborted, goes to `abort` of its executor.
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
from gt.worker.collectives.exchange import exchange, poison

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
    """For instructions that workers have nothing to do for."""


class Executor(NamedTuple):
    """How a type of instruction is executed, and what is done instead if its batch is aborted.

    In addition, the tensors that an aborted instruction would have made become failures.
    """

    execute: Execute
    abort: Abort = _nothing


def _get_data(run: Execution, order: GetData) -> None:
    state, worker = run.state, run.worker
    try:
        array = worker.engine.get(state.values[order.tensor])
        run.data.append(Fetched(order.request, array, None, order.part))
    except Exception as error:  # noqa: BLE001 - any error of an engine is sent to the client, as a value
        cause = state.failures.get(order.tensor) or worker.message("giving out data", error)
        run.data.append(Fetched(order.request, None, cause, order.part))


def _abort_get_data(run: Execution, order: GetData, why: str) -> None:
    run.data.append(Fetched(order.request, None, why, order.part))


def _upload(run: Execution, order: Upload) -> None:
    try:
        if run.limit is not None:
            run.limit.check(order.array.nbytes)
        run.state.values[order.result] = run.worker.engine.put(order.array)
    except Exception as error:  # noqa: BLE001 - as above
        array = order.array
        what = f"taking in <{array.dtype} {list(array.shape)}, {array.nbytes} bytes>"
        run.failed.append(run.worker.fail(run.state, order.result, what, error))


def _create(run: Execution, order: CreateTensor) -> None:
    """Create a tensor from bytes in the instruction itself, such as one that a modifier has injected."""
    array = order.array
    try:
        if order.part is not None or array.shared or not isinstance(array.data, bytes):
            raise ValueError("its bytes are not in the instruction")
        if len(array.data) != array.nbytes:
            raise ValueError(f"{array!r} comes with {len(array.data)} bytes")
        data = np.frombuffer(bytearray(array.data), numpy_dtype(array.dtype)).reshape(array.shape)
    except Exception as error:  # noqa: BLE001 - as above
        run.failed.append(run.worker.fail(run.state, order.result, "an upload", error))
        return
    _upload(run, Upload(order.result, data))


def _site(run: Execution, order: Site) -> None:
    run.state.sites[order.number] = order.where


def _lost(run: Execution, order: Lost) -> None:
    run.state.failures.update(dict.fromkeys(order.tensors, order.error))


def _repeat(run: Execution, repeat: Repeat) -> None:
    run.worker.repeats.run(run.state, repeat, run.failed, run.data, run.limit is not None)


def _exchange(run: Execution, order: Exchange) -> None:
    """Take part in an exchange, even with nothing to send: other workers wait for this one."""
    worker, state, peers = run.worker, run.state, run.worker.peers
    worker.exchanged.add(order.number)
    try:
        if peers is None:
            raise RuntimeError("this worker knows no others")
        sends = peers.name in order.source.workers
        own, error = _own_part(worker, state, order) if sends else (None, None)
        result = exchange(order, own, error, peers)
        if result is not None:
            if worker.limit is not None:
                worker.limit.check(result.nbytes)
            state.values[order.result] = worker.engine.put(result)
    except WorkerError as cause:
        state.failures[order.result] = str(cause)
        run.failed.append(Failed(order.result, str(cause)))
    except Exception as error:  # noqa: BLE001 - as above
        run.failed.append(worker.fail(state, order.result, order.kind, error))


def _own_part(worker: "Worker", state: ClientState, order: Exchange) -> tuple[np.ndarray | None, str | None]:
    """The array that this worker sends in an exchange, or the reason why it has none."""
    if order.tensor not in state.values:
        missing = f"Tensor not found: there is no tensor {order.tensor}"
        return None, state.failures.get(order.tensor, missing)
    try:
        array = worker.engine.get(state.values[order.tensor])
        index = order.source.workers.index(worker.name)
        expected = order.source.local_shape(index, order.shape)
        if array.shape == expected and array.dtype.name == order.dtype:
            return array, None
        found = f"{array.dtype}{list(array.shape)}"
        return None, f"{order.kind} on {worker.name}: {found} is not {list(expected)}"
    except Exception as error:  # noqa: BLE001 - as above; and the other workers must get it
        return None, worker.message(order.kind, error)


def _abort_exchange(run: Execution, order: Exchange, why: str) -> None:
    """Send the error to the workers that wait, unless this one has taken part already."""
    if run.worker.peers is not None and order.number not in run.worker.exchanged:
        poison(order, why, run.worker.peers)


def _shard_op(run: Execution, order: ShardOp) -> None:
    """Slice a tensor of which this worker has all."""
    index: list[Any] = [*[[0, 1 << 62, 1]] * order.axis, [order.start, order.stop, 1]]
    op = Op(order.result, "getitem", (order.tensor,), {"index": index}, -1)
    values = run.state.values
    try:
        values[order.result] = run.worker.engine.run("getitem", [values[order.tensor]], op.attrs)
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
    # For the dispatcher, and for detectors.
    Signal: Executor(_nothing),
    Boundary: Executor(_nothing),
}
