"""Ablations: what each mechanism of gt buys. Each benchmark runs the same work with and without one of them.

    python -m benchmarks.ablations                      # all, as a table
    python -m benchmarks.ablations backward_replay      # one mechanism

A mechanism is switched off by replacing one function in every process of a side: the product itself has no
switches for this. The two sides take turns, as everywhere. Each is a process of its own (`serve`), with its
own server and workers; but eager work in an embedded server is one process that switches between turns: two
processes that do the same differ by up to 20 % in speed, which is more than the mechanisms that matter there.
"""

import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness import Benchmark, Job, afterwards, run, speed_at_least

ROOT = Path(__file__).parents[1]
VARIABLE = "GT_BENCH_ABLATE"
"""Names the mechanism that is off in this process and its children."""


# --- the mechanisms, and how each is switched off ---


def _without_ngram_filter() -> None:
    from gt.stream.hotpath_detector import HotPathDetector

    _replace(HotPathDetector, "_skip_new", lambda self, instructions, place: 0)


def _without_column_prediction() -> None:
    from gt.stream.prediction import Prediction

    _replace(Prediction, "take", lambda self, instructions, start: 0)


def _without_eager_repeats() -> None:
    from gt.worker.compile.eager_repeat import EagerRepeats

    _replace(EagerRepeats, "run", lambda self, repeat, values: repeat.expanded())


def _without_background_thread() -> None:
    from gt.worker import repeat_runner

    _replace(repeat_runner, "BACKGROUND_SECONDS", math.inf)
    _replace(repeat_runner, "BACKGROUND_SECONDS_EMBEDDED", math.inf)


def _without_backward_replay() -> None:
    from gt.autograd.backward_replay import GradientPlans, rules

    _replace(GradientPlans, "gradients", lambda self, node, g: rules(node, g))


def _without_placed_repeats() -> None:
    from gt.dispatcher.sharding.placed_repeats import PlacedRepeats
    from gt.dispatcher.sharding.placing import place

    def one_by_one(self: Any, session: Any, instructions: Any, sessions: Any = ()) -> Any:
        from gt.stream.repeats import flat

        return place(session, self._sharding, flat(instructions))

    _replace(PlacedRepeats, "place", one_by_one)


def _without_memory_guard() -> None:
    from gt.worker.limits.guard import Guard

    _replace(Guard, "near", lambda self: None)


def _without_hot_paths() -> None:
    os.environ["GT_AUTO_COMPILE"] = "0"


MECHANISMS: dict[str, Callable[[], None]] = {
    "ngram_filter": _without_ngram_filter,
    "column_prediction": _without_column_prediction,
    "eager_repeats": _without_eager_repeats,
    "background_thread": _without_background_thread,
    "backward_replay": _without_backward_replay,
    "placed_repeats": _without_placed_repeats,
    "memory_guard": _without_memory_guard,
    "hot_paths": _without_hot_paths,
}


def _replace(owner: Any, name: str, value: Any) -> None:
    if name not in vars(owner):
        raise AttributeError(f"{owner.__name__} has no {name}: the ablation has to follow the code")
    _replaced.append((owner, name, vars(owner)[name], value))
    setattr(owner, name, value)


_replaced: list[tuple[Any, str, Any, Any]] = []
"""For each function that was replaced: its owner and name, itself, and its replacement."""


def _switch(on: bool) -> None:
    """Switch the mechanism of this process on, or off again."""
    for owner, name, original, replacement in _replaced:
        setattr(owner, name, original if on else replacement)


def switch_off() -> None:
    """Switch off what the environment names, in this process. A second call has no effect."""
    name = os.environ.get(VARIABLE)
    if name and not _replaced:
        MECHANISMS[name]()


# --- the work ---


def _small_ops() -> Callable[[], Any]:
    import gt

    x, y = gt.zeros(10), gt.ones(10)

    def step() -> Any:
        z = x
        for _ in range(50):
            z = (z + y) * y
        return z.sum()

    return step


def _never_the_same() -> Callable[[], Any]:
    import random

    import gt

    generator = random.Random(0)
    x, y = gt.rand(10), gt.rand(10)
    names = ("add", "sub", "mul", "maximum", "minimum", "atan2")

    def step() -> Any:
        z = x
        for _ in range(100):
            z = getattr(z, generator.choice(names))(y) if generator.random() < 0.5 else z.tanh()
        return z.sum()

    return step


def _mlp() -> Callable[[], Any]:
    import gt
    from benchmarks.gt_hotpaths import mlp

    return mlp(gt, 64)


def _gpt() -> Callable[[], Any]:
    import gt
    from benchmarks.gt_hotpaths import gpt

    return gpt(gt)


WORK: dict[str, tuple[Callable[[], Callable[[], Any]], int]] = {
    "mlp": (_mlp, 100),
    "gpt": (_gpt, 30),
    "small_ops": (_small_ops, 100),
    "no_repeats": (_never_the_same, 50),
}
"""The work by name, and how many steps of it run between two reads of a result."""

PLACES: dict[str, int | None] = {"embedded": None, "processes": 1, "two_workers": 2}


def serve(work: str, place: str, compiled: bool) -> None:
    """Run steps whenever a line comes in, and answer with a line; "with" and "without" switch before them."""
    switch_off()
    import gt

    gt.init(workers=PLACES[place])
    make, steps = WORK[work]
    step = make()

    def job() -> None:
        loss = None
        for _ in range(steps):
            loss = step()
        assert loss is not None
        loss.item()

    if compiled and os.environ.get(VARIABLE) != "hot_paths":  # which then never compiles
        from benchmarks.gt_hotpaths import _until_compiled

        _until_compiled(job)
    else:
        job()
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() in ("with", "without"):
            _switch(line.strip() == "with")
        job()
        print("done", flush=True)


class Side:
    """A process that runs the work with a mechanism switched off, or with all of them on."""

    def __init__(self, work: str, place: str, compiled: bool, without: str = "") -> None:
        hooks = tempfile.TemporaryDirectory(prefix="gt-ablation-")
        afterwards(hooks.cleanup)
        # Servers and workers that this process starts are Python programs too, and load this at their start.
        hook = f"import os\nif os.environ.get({VARIABLE!r}):\n"
        hook += "    from benchmarks.ablations import switch_off\n    switch_off()\n"
        (Path(hooks.name) / "sitecustomize.py").write_text(hook)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([hooks.name, str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "GT_CACHE_DIR": str(Path(hooks.name) / "cache"),
            "GT_COMPILE_AFTER": "0" if compiled else "1000000",
            "OMP_NUM_THREADS": "1",
            VARIABLE: without,
        }
        start = f"from benchmarks.ablations import serve; serve({work!r}, {place!r}, {compiled})"
        command = [sys.executable, "-c", start]
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        afterwards(self.close)
        self._expect("ready")

    def run(self, how: str = "as it is") -> None:
        """One turn of the work; `how` may be "with" or "without" the mechanism."""
        assert self._process.stdin is not None
        self._process.stdin.write(how + "\n")
        self._process.stdin.flush()
        self._expect("done")

    def _expect(self, word: str) -> None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if line != word:
            raise RuntimeError(f"this side said {line!r} instead of {word!r}; its error is above")

    def close(self) -> None:
        """End the process; its server and workers end with it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _benchmark(mechanism: str, work: str, place: str, compiled: bool) -> Benchmark:
    def prepare() -> tuple[Job, Job]:
        if place == "embedded" and not compiled:
            both = Side(work, place, compiled, without=mechanism)
            return lambda: both.run("with"), lambda: both.run("without")
        with_it = Side(work, place, compiled)
        return with_it.run, Side(work, place, compiled, without=mechanism).run

    state = "compiled" if compiled else "not compiled"
    what = f"{work} steps, {place}, {state}, with {mechanism.replace('_', ' ')}"
    name = f"gt_ablate_{mechanism}_{work}_{place}"
    return Benchmark(name, what, "the same without", speed_at_least(1.05), prepare)


CASES: list[tuple[str, str, str, bool]] = [
    ("ngram_filter", "no_repeats", "embedded", False),
    ("ngram_filter", "gpt", "embedded", False),
    ("column_prediction", "mlp", "embedded", True),
    ("column_prediction", "gpt", "embedded", True),
    ("column_prediction", "gpt", "processes", True),
    ("column_prediction", "small_ops", "embedded", False),
    ("eager_repeats", "mlp", "embedded", False),
    ("eager_repeats", "gpt", "embedded", False),
    ("eager_repeats", "gpt", "processes", False),
    ("eager_repeats", "small_ops", "embedded", False),
    ("eager_repeats", "small_ops", "processes", False),
    ("background_thread", "mlp", "embedded", True),
    ("background_thread", "gpt", "embedded", True),
    ("background_thread", "mlp", "processes", True),
    ("background_thread", "gpt", "processes", True),
    ("backward_replay", "mlp", "embedded", True),
    ("backward_replay", "gpt", "embedded", True),
    ("backward_replay", "gpt", "processes", True),
    ("placed_repeats", "mlp", "two_workers", True),
    ("placed_repeats", "gpt", "two_workers", True),
    ("memory_guard", "mlp", "processes", True),
    ("hot_paths", "mlp", "embedded", True),
    ("hot_paths", "mlp", "processes", True),
    ("hot_paths", "gpt", "embedded", True),
    ("hot_paths", "gpt", "processes", True),
    ("hot_paths", "gpt", "two_workers", True),
]


def main() -> None:
    """Run all, and print a table."""
    print("| mechanism | work | where | speed with it, against without |\n| --- | --- | --- | --- |")
    for mechanism, work, place, compiled in CASES:
        if sys.argv[1:] and mechanism not in sys.argv[1:]:
            continue
        result = run(_benchmark(mechanism, work, place, compiled), repeats=7)
        state = "compiled" if compiled else "eager"
        print(f"| {mechanism.replace('_', ' ')} | {work}, {state} | {place} | {result.value:.2f}x ", end="")
        print(f"({result.low:.2f} to {result.high:.2f}) |", flush=True)


if __name__ == "__main__":
    main()
