"""A peer that speaks ZeroMQ to a server, and sends any messages that a test gives it."""

import zmq

from gt.transport import protocol
from gt.transport.connection import endpoint
from tests.gt.helpers.servers import Cluster
from tests.programs import TIMEOUT


class Stranger:
    """Speaks ZeroMQ, and says what it likes."""

    def __init__(self, running: Cluster) -> None:
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.connect(endpoint(running.address))

    def ask(self, *parts: bytes) -> protocol.ToClient:
        self.socket.send_multipart(parts)
        return self.read()

    def read(self) -> protocol.ToClient:
        while True:
            assert self.socket.poll(int(TIMEOUT * 1000)), "the server did not answer"
            answer = protocol.decode_by_client(self.socket.recv_multipart()[0])
            if not isinstance(answer, protocol.DirectReads):  # which is not asked for
                return answer

    def __enter__(self) -> "Stranger":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        self.context.term()


HELLO = protocol.encode(protocol.Hello(protocol.VERSION, "", 0))
