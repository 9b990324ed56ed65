"""A worker that joins a server, message by message: the server's end is a bare socket."""

import subprocess
import sys
from pathlib import Path

import zmq

from gt.stream.instructions import GetData, Op
from gt.transport import protocol
from tests.programs import TIMEOUT

ROOT = Path(__file__).parents[2]


def test_work_that_arrives_together_with_the_welcome_is_done_under_the_workers_name(tmp_path: Path) -> None:
    """Exchanges go by that name: one that began without it had the other workers wait for ever."""
    address = f"ipc://{tmp_path}/server"
    failing = Op(1, "full", (), {"shape": [2], "value": 1.0, "dtype": "no such dtype"}, 0)
    with zmq.Context() as context, context.socket(zmq.ROUTER) as server:
        server.linger = 0
        server.rcvtimeo = int(TIMEOUT * 1000)
        server.bind(address)
        command = [sys.executable, "-m", "gt.worker", "--address", address, "--engine", "numpy"]
        worker = subprocess.Popen(command, cwd=ROOT)
        try:
            identity, hello = server.recv_multipart()
            assert isinstance(protocol.decode_by_server(hello), protocol.WorkerHello)
            # One right behind the other: both are in the worker's queue when it wakes up.
            for message in (
                protocol.Welcome("worker_5", False, 5),
                protocol.Work(0, "c1", [failing, GetData(7, 1)], False),
            ):
                server.send_multipart([identity, protocol.encode(message)])
            done = protocol.decode_by_server(server.recv_multipart()[1])
        finally:
            worker.kill()
            worker.wait(TIMEOUT)
    assert isinstance(done, protocol.Done)
    assert "failed on worker_5" in str(done.data[0].error)
