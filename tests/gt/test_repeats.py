"""A repeat stands for its instructions: sends_repeats, sent and expanded again, a stream does the same."""

import itertools
import threading
import time
from typing import Any

import hypothesis.strategies as st
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings

import gt
from gt.client import Client, session
from gt.dispatcher import Dispatcher
from gt.dispatcher.fair_share import CHUNK_SECONDS
from gt.dispatcher.session import RECENT_SECONDS
from gt.errors import ConnectionLost, ProtocolError
from gt.server.embedded import LocalConnection, LocalServer
from gt.stream.instructions import Boundary, Define, GetData, Instruction, Op, Replay, Signal, Site
from gt.stream.layouts import Sharded
from gt.stream.repeat_builder import RepeatBuilder
from gt.stream.repeats import MAX_TEMPLATES, Repeat, RepeatDecoder, RepeatEncoder, cut_after, flat, weight
from tests.gt.helpers.servers import Cluster
from tests.programs import TIMEOUT

EIGHT = ("add", "mul", "sub", "maximum", "truediv", "minimum", "atan2", "fmod")
"""So many different ops that doing them twice is worth a repeat."""

encoded = msgspec.msgpack.Encoder().encode
decoded = msgspec.msgpack.Decoder(list[Instruction]).decode


def follow(stream: Any) -> tuple[dict[int, Any], list[Any]]:
    """The tensors that exist after a stream, each as the expression that made it, and the reads."""
    values: dict[int, Any] = {}
    read = []
    for one in flat(list(stream)):
        if isinstance(one, int):
            del values[one]
        elif isinstance(one, GetData):
            read.append((one.request, values[one.tensor]))
        elif isinstance(one, Op):
            attrs = repr(sorted((one.attrs or {}).items()))
            values[one.result] = hash((one.op, attrs, one.site, *[values[i] for i in one.inputs]))
    return values, read


class Loop:
    """Writes a training loop's instructions: parameters, a step of ops over them, and what is freed when."""

    def __init__(self, seed: int, steps: int) -> None:
        self.random = np.random.default_rng(seed)
        self.ids = itertools.count()
        self.stream: list[Any] = []
        self.parameters = [self.op("full", value=float(n)) for n in range(3)]
        shape = [
            (str(self.random.choice(["add", "mul", "sub"])), *self.random.integers(0, 3 + n, 2))
            for n in range(20)
        ]
        late: list[int] = []
        for n in range(steps):
            known = list(self.parameters)
            made = []
            for line, (op, a, b) in enumerate(shape):
                scale = {"x_scale": float(n), "flag": True} if op == "mul" else {}
                made.append(self.op(op, known[a], known[b], site=line, **scale))
                known.append(made[-1])
                if late and self.random.random() < 0.5:
                    self.stream.append(late.pop())
            before, self.parameters = self.parameters, made[-3:]
            gone = [*before, *made[:-3]]
            self.random.shuffle(gone)
            keep = int(self.random.integers(0, 2))
            self.stream += [*late, *gone[keep:]]
            late = gone[:keep]
            if self.random.random() < 0.2:
                self.stream.append(GetData(n, made[-1]))

    def op(self, name: str, *inputs: int, site: int = 0, **attrs: Any) -> int:
        result = next(self.ids)
        self.stream.append(Op(result, name, tuple(int(i) for i in inputs), attrs or None, site))
        return result


def in_batches(stream: list[Any], seed: int) -> list[list[Any]]:
    random = np.random.default_rng(seed)
    batches, rest = [], stream
    while rest:
        size = int(random.integers(1, 40))
        batches.append(rest[:size])
        rest = rest[size:]
    return batches


@settings(max_examples=60)
@given(seed=st.integers(0, 1 << 20), hold_complete=st.booleans())
def test_a_stream_with_repeats_has_the_results_of_its_ops(seed: int, hold_complete: bool):
    stream = Loop(seed, 30).stream
    repeat_builder = RepeatBuilder(hold_complete)
    random = np.random.default_rng(seed)
    out: list[Any] = []
    encoder, decoder = RepeatEncoder(), RepeatDecoder()
    for batch in in_batches(stream, seed):
        short = repeat_builder.build(batch)
        if random.random() < 0.2:
            short += repeat_builder.release()
        sent = encoded(encoder.encode(short))
        out += decoder.decode(decoded(sent))
    out += repeat_builder.release()
    assert follow(out) == follow(stream)
    repeats = [one for one in out if isinstance(one, Repeat)]
    assert repeats, "a loop of thirty steps is repeated"
    assert weight(out) == len(stream)
    for one in repeats:
        assert one.size == len(one.expanded())


def test_a_step_of_many_ops_is_a_message_of_a_few_hundred_bytes():
    def step(stream: list[Any], ids: Any, parameter: int) -> int:
        x = parameter
        for _ in range(1000):
            before, x = x, next(ids)
            stream.append(Op(x, "add", (before, before), None, 0))
            stream.append(before)
        return x

    ids, stream = itertools.count(1), [Op(0, "zeros", (), {"shape": [3]}, 0)]
    parameter = 0
    for _ in range(6):
        parameter = step(stream, ids, parameter)
    repeat_builder, encoder = RepeatBuilder(hold_complete=True), RepeatEncoder()
    sizes = [len(encoded(encoder.encode(repeat_builder.build(batch)))) for batch in in_batches(stream, 3)]
    assert sum(sizes[-40:]) < len(encoded(stream)) / 20


def test_signals_and_sites_are_part_of_a_repeat():
    stream: list[Any] = []
    x = 0
    stream.append(Op(0, "zeros", (), {"shape": [4]}, 0))
    for n in range(12):
        if n == 8:
            stream.append(Site(77, "elsewhere.py:3"))
        for op in EIGHT:
            stream += [
                Signal(x + 1, "rows", Sharded(0)),
                Op(x + 1, op, (x, x), None, 77 if n >= 8 else 1),
                x,
            ]
            x += 1
    repeat_builder = RepeatBuilder()
    out = [*repeat_builder.build(stream), *repeat_builder.release()]
    repeats = [one for one in out if isinstance(one, Repeat)]
    assert {site for one in repeats for site in one.template.sites} == {1, 77}
    assert all(len(one.template.signals) >= len(one.sequence) - 1 for one in repeats)
    plain = flat(out)
    assert follow(plain) == follow(stream)
    assert [one.tensor for one in plain if isinstance(one, Signal)] == list(range(1, x + 1))


def test_changes_of_a_zeros_sign_and_of_a_numbers_type_are_sent():
    def stream(*numbers: float) -> list[Any]:
        out: list[Any] = [Op(0, "zeros", (), {"shape": [4]}, 0)]
        x = 0
        for number in numbers:
            for op in 3 * EIGHT:
                out.append(Op(x + 1, op, (x,), {"scalar": number, "reflected": False}, 0))
                x += 1
        return out

    sent = stream(0.0, 0.0, -0.0, float("nan"), 1.0, 1, True)
    repeat_builder = RepeatBuilder()
    out = [*repeat_builder.build(sent), *repeat_builder.release()]
    said = [attrs for one in out if isinstance(one, Repeat) for attrs in one.changed.values()]
    assert {repr(attrs["scalar"]) for attrs in said} == {"-0.0", "nan", "1.0"}
    same = [repr(one.attrs) for one in flat(out)] == [repr(one.attrs) for one in sent]
    assert same


def test_pieces_are_cut_by_the_number_of_expanded_instructions():
    stream = Loop(5, 30).stream
    repeat_builder = RepeatBuilder()
    out = repeat_builder.build(stream)
    place, sizes = 0, []
    while place < len(out):
        end = cut_after(out, place, 50)
        assert end > place
        sizes.append(weight(out[place:end]))
        place = end
    assert sum(sizes) == weight(out)
    assert max(sizes) < 50 + max(one.size for one in out if isinstance(one, Repeat))


def test_both_ends_forget_the_same_sequences():
    encoder, decoder = RepeatEncoder(), RepeatDecoder()
    for n in range(3 * MAX_TEMPLATES):
        stream = [Op(0, "zeros", (), {"shape": [n + 1]}, 0)]
        stream += [Op(k + 1, EIGHT[k % 8], (k, k), None, n) for k in range(60)]
        repeat_builder = RepeatBuilder()
        short = [*repeat_builder.build(stream), *repeat_builder.release()]
        assert any(isinstance(one, Repeat) for one in short)
        assert follow(decoder.decode(decoded(encoded(encoder.encode(short))))) == follow(stream)


STEP = ("add", (-1, -2), None)
DENSE = Define(0, [STEP], [1])
SPARSE = Define(0, [STEP], [1], [], False, [3])


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ([Replay(3, [], [1, 1], [], [])], "a repeat of the sequence 3, which was not defined"),
        ([Define(0, [], [])], "a sequence of 0 ops with 0 sites"),
        ([Define(0, [STEP], [1, 2])], "a sequence of 1 ops with 2 sites"),
        ([Define(0, [("add", (-1, 0), None)], [1])], "step 0 has an invalid input 0"),
        ([Define(0, [("add", (-2, -1), None)], [1])], "step 0 has an invalid input -2"),
        ([Define(0, [STEP], [1], [(4, Signal(1, "rows", Sharded(0)))])], "a signal for an invalid step"),
        ([Define(0, [STEP], [1], [], False, [0, 1])], "invalid result indices: [0, 1]"),
        ([Define(0, [STEP], [1], [], False, [-1])], "invalid result indices: [-1]"),
        ([Define(0, [STEP], [1], [], False, [1 << 40])], "invalid result indices: [1099511627776]"),
        ([Define(0, [STEP, STEP], [1, 1], [], False, [3, 3])], "invalid result indices: [3, 3]"),
        ([SPARSE, Replay(0, [1, 2], [5, 1], [], [])], "wrong number of results: [5, 1]"),
        ([SPARSE, Replay(0, [1, 2], [5, 1 << 40], [], [])], "wrong number of results: [5, 1099511627776]"),
        ([DENSE, Replay(0, [1], [5, 1], [], [])], "a repeat with 1 inputs of a sequence that takes 2"),
        ([DENSE, Replay(0, [1, 2], [5, 2], [], [])], "wrong number of results: [5, 2]"),
        ([DENSE, Replay(0, [1, 2], [5], [], [])], "wrong number of results: [5]"),
        ([DENSE, Replay(0, [1, 2], [5, -1, 7, 2], [], [])], "wrong number of results: [5, -1, 7, 2]"),
        ([DENSE, Replay(0, [1, 2], [5, 1], [1], [])], "keeps the results of steps [1]"),
        ([DENSE, Replay(0, [1, 2], [5, 1], [0, 0], [])], "keeps the results of steps [0, 0]"),
        ([DENSE, Replay(0, [1, 2], [5, 1], [], [], {0: {"out": 1}})], "invalid attributes for step 0"),
        ([DENSE, Replay(0, [1, 2], [5, 1], [], [], {9: {}})], "invalid attributes for step 9"),
        (
            [
                Define(0, [("add", (-1,), {"scalar": 1, "reflected": False})], [1]),
                Replay(0, [1], [5, 1], [0], [], {0: {"scalar": 2, "reflected": False}}),
            ],
            "invalid attributes for step 0",
        ),
    ],
)
def test_an_inconsistent_repeat_is_refused_with_the_reason(messages: list[Any], error: str):
    with pytest.raises(ProtocolError) as refused:
        RepeatDecoder().decode(decoded(encoded(messages)))
    assert error in str(refused.value)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (Replay(0, [1 << 40, 1 << 41], [50, 1], [0], []), "Tensor not found"),
        (Replay(1, [], [50, 1], [0], []), "was not defined"),
        (Replay(0, [0, 0], [50, 1], [0], [1 << 40]), "Tensor not found"),
    ],
)
def test_only_the_client_of_a_malformed_repeat_is_refused(pytorch_cluster: Cluster, message: Any, said: str):
    from gt.client import Client
    from gt.client.connection import RemoteConnection

    good = Client(RemoteConnection(pytorch_cluster.address, timeout=TIMEOUT))
    bad = Client(RemoteConnection(pytorch_cluster.address, timeout=TIMEOUT))
    try:
        create = Op(0, "zeros", (), {"shape": [2], "dtype": "float32"}, 0)
        bad.connection.send([create, Define(0, [STEP], [1]), message, GetData(1, 0)])
        with pytest.raises(ConnectionLost, match=said):
            bad.connection.wait(1)
        assert good.fetch(good.create(np.ones(2))).tolist() == [1, 1]
    finally:
        good.close()
        bad.close()


def test_boundaries_pass(client: Any):
    session.current().emit(Boundary("here", True))
    x = gt.ones(3) + 1
    session.current().emit(Boundary("here", False))
    assert x.tolist() == [2, 2, 2]


class NoClient:
    """A client that listens to nothing."""

    def ack(self, sequence: int) -> None: ...
    def data(self, reply: Any) -> None: ...
    def failed(self, request: int, error: str, part: Any = None) -> None: ...
    def refused(self, error: str) -> None: ...


class Slow:
    """A worker that answers when the test calls it."""

    name = "worker_0"

    def __init__(self, dispatcher: Dispatcher, seconds: float = 1e-6) -> None:
        self.dispatcher = dispatcher
        self.seconds = seconds
        """How long it says that an instruction took."""
        self.waiting: list[Any] = []

    def send(self, sequence: int, chunk: Any) -> None:
        self.waiting.append((sequence, chunk))

    def forget(self, client: str) -> None: ...

    def answer(self) -> Any:
        sequence, chunk = self.waiting.pop(0)
        self.dispatcher.done(sequence, self.seconds * weight(chunk.instructions), [], [])
        return chunk


def test_a_repeat_counts_in_the_fair_shares_as_the_ops_it_stands_for():
    def steps(count: int) -> list[Any]:
        stream: list[Any] = [Op(0, "zeros", (), {"shape": [4]}, 0)]
        for n in range(count * 64):
            stream += [Op(n + 1, EIGHT[n % 8], (n, n), None, 0), n]
        return stream

    dispatcher = Dispatcher()
    worker = Slow(dispatcher)
    dispatcher.add_worker(worker)
    short, long = dispatcher.connect(NoClient()), dispatcher.connect(NoClient())
    sends_repeats = RepeatBuilder().build(steps(200))
    repeats = [one for one in sends_repeats if isinstance(one, Repeat)]
    assert len(sends_repeats) < len(steps(200)) / 8
    assert min(one.size for one in repeats) > 30
    plain = steps(200)
    for number, start in enumerate(range(0, len(plain), 128)):
        dispatcher.receive(long, number + 1, plain[start : start + 128])
    for number, one in enumerate(sends_repeats):
        dispatcher.receive(short, number + 1, [one])
    served = {short: 0, long: 0}

    def serve(count: int) -> None:
        served.update(dict.fromkeys(served, 0))
        while sum(served.values()) < count:
            chunk = worker.answer()
            assert chunk.weight == weight(chunk.instructions)
            served[chunk.session.name] += chunk.weight

    serve(10_000)  # until it is known how long an op takes
    serve(10_000)
    assert 0.8 < served[short] / served[long] < 1.25, served


def adds(count: int) -> list[Any]:
    """One op again and again."""
    stream: list[Any] = [Op(0, "zeros", (), {"shape": [4]}, 0)]
    for n in range(count):
        stream += [Op(n + 1, "add", (n, n), None, 0), n]
    return stream


@pytest.mark.parametrize("another_client", [False, True])
@pytest.mark.parametrize("seconds", [1e-5, 1e-3, 0.1])
def test_many_large_ops_that_are_one_instruction_are_taken_apart_if_others_wait(
    seconds: float, another_client: bool
):
    dispatcher = Dispatcher()
    worker = Slow(dispatcher, seconds)
    dispatcher.add_worker(worker)
    client, other = dispatcher.connect(NoClient()), dispatcher.connect(NoClient())
    if not another_client:  # or not any more
        dispatcher.sessions[other].waiting_since -= 2 * RECENT_SECONDS
    for number, one in enumerate(RepeatBuilder(hold_complete=True).build(adds(4000))):
        dispatcher.receive(client, number + 1, [one])
    chunks = []
    while worker.waiting:
        chunks.append(worker.answer())
    ops = [one.op for chunk in chunks for one in flat(chunk.instructions) if isinstance(one, Op)]
    assert len(ops) >= 3800
    tail = chunks[-20:-1]
    if seconds == 0.1:  # for those who may come
        assert max(chunk.weight for chunk in tail) == 1
    elif another_client and seconds == 1e-3:
        assert max(chunk.weight for chunk in tail) * seconds <= CHUNK_SECONDS
    else:
        assert all(isinstance(chunk.instructions[0], Repeat) for chunk in tail)


def test_a_worker_does_not_wait_for_more_of_a_few_ops_that_come_again_and_again():
    repeat_builder = RepeatBuilder()
    stream = adds(1200)
    out = repeat_builder.build(stream[:1200])
    assert any(isinstance(one, Repeat) for one in out)
    for start in range(1200, len(stream), 20):
        out += repeat_builder.build(stream[start : start + 20])
        assert repeat_builder.held is None
    assert weight(out) == len(stream)


def test_a_client_that_waits_for_room_sends_whole_steps():
    """The thread that flushes regularly leaves it alone: half a step would travel op by op."""
    sent: list[Any] = []

    class Slow(LocalConnection):
        def wait_for_room(self) -> None:
            time.sleep(0.05 if threading.current_thread() is threading.main_thread() else 0)

        def send(self, batch: list[Any]) -> None:
            sent.append(batch)
            super().send(batch)

    client = Client(Slow(LocalServer("numpy")))
    x = client.create(np.ones(2))
    names = ["neg", "abs", "exp", "tanh", "sin", "cos", "erf", "relu", "floor"]
    for n in range(1500):
        number = client.next_id()
        client.emit(
            Op(
                number,
                names[n % 9],
                (x,),
                None,
                0,
            )
        )
        client.emit(number)
        if number >= client.next_flush:
            client.next_flush = number + client.flush_ready()
    broken = [batch for batch in sent if any(isinstance(one, Op) for one in batch)]
    assert len(sent) > 20
    assert len(broken) < len(sent) / 4, "only while it learns, or if this machine itself pauses"
    client.close()
