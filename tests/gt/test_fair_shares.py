"""The dispatcher divides workers' time among clients, and refuses those that ask for too much."""

import threading
from typing import Any

import gt
from gt.dispatcher import Dispatcher
from gt.server.embedded import LocalServer
from gt.server.server import MAX_REQUESTS
from gt.stream.instructions import GetData, Lost, Op
from gt.transport import protocol
from tests.gt.helpers.servers import Cluster
from tests.gt.helpers.strangers import HELLO, Stranger


class Recorder:
    """A client's and a worker's link in one: records what it gets, and answers when the test calls it."""

    name = "w"

    def __init__(self) -> None:
        self.work: list[tuple[int, Any]] = []
        self.errors: dict[int, str] = {}

    def send(self, sequence: int, chunk: Any) -> None:
        self.work.append((sequence, chunk))

    def forget(self, client: str) -> None: ...
    def ack(self, sequence: int) -> None: ...
    def data(self, reply: Any) -> None: ...
    def refused(self, error: str) -> None: ...
    def failed(self, request: int, error: str, part: Any = None) -> None:
        self.errors[request] = error


def full(result: int) -> Op:
    return Op(result, "full", (), {"shape": [1], "value": 1, "dtype": "float32"}, 0)


def test_a_new_client_does_not_delay_one_that_has_used_much_time():
    dispatcher, link = Dispatcher(), Recorder()
    dispatcher.add_worker(link)
    old = dispatcher.connect(link)
    for number in range(50):
        dispatcher.receive(old, number, [full(number)])
        dispatcher.done(link.work.pop()[0], 60.0, [], [])  # an hour's work, alone
    new = dispatcher.connect(link)
    for number in range(200):
        dispatcher.receive(new, number, [full(number)])
    dispatcher.receive(old, 50, [full(50)])
    served = []
    while link.work:
        sequence, chunk = link.work.pop(0)
        served.append(chunk.session.name)
        dispatcher.done(sequence, 0.1, [], [])
    assert served.index(old) < 20, "its one instruction waits for a few of the newcomer's, not for all"


def test_instructions_that_cannot_be_sent_fail_only_their_client():
    class Refusing(Recorder):
        def send(self, sequence: int, chunk: Any) -> None:
            if any(isinstance(one, Op) and one.op == "cursed" for one in chunk.instructions):
                raise RecursionError("too deep")
            super().send(sequence, chunk)

    dispatcher, link = Dispatcher(), Refusing()
    dispatcher.add_worker(link)
    for _ in range(30):
        bad = dispatcher.connect(link)
        dispatcher.receive(bad, 1, [Op(0, "cursed", (), None, 0)])
        assert bad not in dispatcher.sessions
    good = dispatcher.connect(link)
    dispatcher.receive(good, 1, [full(0)])
    assert len(link.work) == 1


def test_a_freed_tensor_of_a_lost_worker_is_reported_as_lost():
    dispatcher, first, second = Dispatcher(), Recorder(), Recorder()
    dispatcher.add_worker(first)
    client = dispatcher.connect(first)
    dispatcher.receive(client, 1, [full(0)])
    dispatcher.done(first.work.pop()[0], 1.0, [], [])
    for number in range(40):  # more than fits the window: the rest waits in the queue
        dispatcher.receive(client, 2 + number, [Op(number + 1, "add", (number, number), None, 0), number])
    dispatcher.remove_worker("w", "w is gone")
    dispatcher.receive(client, 99, [GetData(5, 40)])
    assert first.errors == {5: "w is gone"}
    second.name = "v"
    dispatcher.add_worker(second)
    (_, chunk) = second.work[0]
    lost = next(one for one in chunk.instructions if isinstance(one, Lost))
    (later,) = {one.inputs[0] for one in second.work[1][1].instructions if isinstance(one, Op)} or {None}
    assert later in lost.tensors


def test_statistics_beside_other_threads(server: LocalServer):
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            x = gt.ones(2)
            for _ in range(50):
                x = x + 1

    threads = [threading.Thread(target=churn) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(100):
            gt.debug.get_worker_stats()
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_client_that_opens_requests_without_end_is_refused():
    running = Cluster()
    try:
        running.start_server()
        with Stranger(running) as worker, Stranger(running) as stranger, Stranger(running) as another:
            hello = protocol.WorkerHello(protocol.VERSION, "", 0, "", "silent", "numpy")
            assert isinstance(worker.ask(protocol.encode(hello)), protocol.Welcome)
            assert isinstance(stranger.ask(HELLO), protocol.Welcome)
            for request in range(MAX_REQUESTS + 1):  # the worker answers none of them
                stranger.socket.send(protocol.encode(protocol.GetStats(request)))
            answer = stranger.read()
            assert isinstance(answer, protocol.Refused)
            assert answer.error == f"more than {MAX_REQUESTS} open requests"
            assert isinstance(another.ask(HELLO), protocol.Welcome)
    finally:
        running.stop()


def test_a_client_that_greets_twice_while_it_waits_for_workers_is_refused():
    running = Cluster()
    try:
        running.start_server("--expect-workers", "1")
        with Stranger(running) as stranger:
            stranger.socket.send(HELLO)
            answer = stranger.ask(HELLO)
            assert isinstance(answer, protocol.Refused)
            assert answer.error == "a second hello"
    finally:
        running.stop()
