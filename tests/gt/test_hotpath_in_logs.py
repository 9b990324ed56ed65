"""The instruction log shows hot paths: where each begins and ends, and every op, however it travelled."""

import functools
import itertools
import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gt.stream.instructions import GetData, Op, Upload, WorkerHotPathEnd, WorkerHotPathStart
from gt.stream.modifiers import fresh_id
from gt.stream.repeat_builder import RepeatBuilder
from gt.stream.repeats import Repeat
from gt.worker import Worker
from tests.programs import run_python

STEPS = 20
TRAIN = f"from tests.gt.test_hotpaths import mlp\nmlp({STEPS})"


detected: dict[str, tuple[int, list[str]]] = {}
"""By the id of a detected sequence: the number of its ops, and the names of the first eight."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[str]]:
    """The log of a training on a system that is started like that, which runs once for all tests.

    What it detects is in `detected`.
    """

    @functools.cache
    def lines(start: str = "gt.init()", auto: str = "1") -> list[str]:
        path = tmp_path_factory.mktemp("logs") / "gt.log"
        settings = {"GT_INSTRUCTION_LOG": str(path), "GT_AUTO_COMPILE": auto, "GT_DEBUG_COMPILE": "1"}
        done = run_python("-c", f"import gt\n{start}\n{TRAIN}", environment={**os.environ, **settings})
        for found in re.finditer(
            r"(\w+): hot path detected, (\d+) ops: (.*?)(, \.\.\.)?$", done.stderr, re.M
        ):
            detected[found[1]] = int(found[2]), found[3].split(", ")
        return path.read_text().splitlines()

    return lines


@pytest.mark.parametrize("start", ["gt.init()", "gt.init(workers=1)"])
def test_the_log_shows_the_marks_and_every_op(log: Callable[..., list[str]], start: str):
    hot, cold = log(start), log(start, "0")
    starts = [line for line in hot if "| WorkerHotPathStart " in line]
    ends = [line for line in hot if re.search(r"\| WorkerHotPathEnd .*complete=True", line)]
    assert len(starts) >= STEPS // 2
    assert len(ends) >= STEPS // 2
    assert not [line for line in cold if "HotPath" in line]

    def what(lines: list[str], event: str) -> list[str]:
        """The ops of a direction, in order, without times and sizes."""
        parts = [re.split(r" *\| *", line) for line in lines]
        return [part[6] for part in parts if part[2] == event and " op=" in part[6]]

    for event in ("RECV", "WORKER_SEND", "WORKER_RECV"):
        assert what(hot, event) == what(cold, event)


@pytest.mark.parametrize(
    ("setting", "events"),
    [
        ("gt.init()", {"WORKER_SEND", "WORKER_RECV"}),
        ("gt.init(workers=1)", {"WORKER_SEND", "WORKER_RECV"}),
        ("gt.init(workers=2, engine='numpy', shard_threshold=16)", {"WORKER_SEND", "WORKER_RECV"}),
        # Where a modifier changes the stream, only the worker can find what is repeated.
        ("gt.init(modifiers={'client': ['tests.gt.test_hotpath_in_logs:Nothing']})", {"WORKER_RECV"}),
        (
            "gt.init(modifiers={'client': ['tests.gt.test_hotpath_in_logs:Nothing'], "
            "'worker': ['tests.gt.test_hotpath_in_logs:Doubles']})",
            {"WORKER_RECV"},
        ),
        (
            "gt.init(modifiers={'worker': ['tests.gt.test_hotpath_in_logs:Doubles']})",
            {"WORKER_SEND", "WORKER_RECV"},
        ),
    ],
)
def test_the_marks_enclose_the_ops_that_they_are_about(
    log: Callable[..., list[str]], setting: str, events: set[str]
):
    bodies: dict[str, set[tuple[str, ...]]] = {}
    open_ones: dict[tuple[str, str], list[str]] = {}
    seen: set[str] = set()
    op_names: dict[str, str] = {}
    for line in log(setting):
        _, _, event, source, command, _, details = re.split(r" *\| *", line, maxsplit=6)
        where, subject = (event, source), details.split()[0] if details else ""
        if op := re.search(r"\bop=(\w+)", details):
            op_names[subject] = op[1]  # the lines about replies do not repeat it
        if command == "WorkerHotPathStart":
            assert where not in open_ones, "a hot path inside of another"
            open_ones[where] = []
        elif command == "WorkerHotPathEnd":
            body, sequence = open_ones.pop(where), subject.removeprefix("sequence=")
            if "complete=True" in details:
                bodies.setdefault(sequence, set()).add(tuple(body))
                seen.add(event)
        elif where in open_ones and command != "WorkerFreeTensor":
            open_ones[where].append(op_names.get(subject, command))
    assert seen == events
    assert all(len(found) == 1 for found in bodies.values()), bodies
    known = bodies.keys() & detected.keys()
    for sequence in known:
        (body,) = bodies[sequence]
        # The tape has what the worker received, and the sequence what a modifier there made of it.
        twice = "relu" if "Doubles" in setting and "client" in setting else ""
        names = [one for one in body if one != "WorkerCreateTensor"]  # an upload
        ops = [op for one in names for op in [one] * (2 if one == twice else 1)]
        assert (len(ops), ops[:8]) == detected[sequence]
    # Over two workers, hot paths are the segments between exchanges. Nothing detects them in a stream.
    assert known == bodies.keys() or "workers=2" in setting
    for body in [body for sequence in bodies.keys() - known for body in bodies[sequence]]:
        assert len(body) >= 4
        assert not [one for one in body if one.startswith("Worker")], "an exchange, or a read"


def test_a_worker_counts_the_ops_of_repeats_before_its_markers():
    """The tape shows a repeat op by op: an index into the instructions as they were sent would be too low."""
    numbers = itertools.count(1)

    def chain(*names: str) -> list[Any]:
        ops = [Op(next(numbers), name, (0,), None, 0) for name in names]
        return [*ops, GetData(0, ops[-1].result)]

    sent = ("exp", "tanh", "sigmoid", "relu", "sin", "cos", "neg", "abs")
    own = ("cos", "neg", "abs", "sqrt", "log", "floor", "exp", "tanh", "sin")
    worker, builder = Worker("w", "pytorch"), RepeatBuilder()
    worker.execute("c", [Upload(0, np.ones(2))])
    for _ in range(8):
        worker.execute("c", chain(*own))
        builder.build(chain(*sent))
    repeat: Any = builder.build(chain(*sent))[0]
    assert type(repeat) is Repeat, "the client sends it so"
    received: list[Any] = [repeat, *chain(*own)]
    outcome = worker.execute("c", received)
    first, last = outcome.marks
    assert (first[0], type(first[1])) == (len(sent), WorkerHotPathStart)
    assert (last[0], type(last[1])) == (len(sent) + len(own), WorkerHotPathEnd)


class Nothing:
    """Passes everything on."""

    def process(self, cmd):
        yield cmd

    def get_stats(self):
        return {}


class Doubles(Nothing):
    """Has every relu done twice."""

    def process(self, cmd):
        if isinstance(cmd, Op) and cmd.op == "relu":
            again = fresh_id()
            yield Op(again, cmd.op, cmd.inputs, cmd.attrs, cmd.site)
            yield again
        yield cmd


def test_every_tensor_that_is_made_is_freed_in_the_log(log: Callable[..., list[str]]):
    made, freed = [], []
    for line in log():
        if "| RECV " in line:
            freed += re.findall(r"FreeTensor .*tensor_id=(\d+)", line)
            made += re.findall(r"(?:result|tensor_id)=(\d+) ", line) if "FreeTensor" not in line else []
    assert len(freed) == len(set(freed))
    assert set(freed) <= set(made)
    assert len(set(made) - set(freed)) < len(made) / 4, "most are gone at the end"
