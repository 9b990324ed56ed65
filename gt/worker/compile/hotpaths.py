"""Hot paths: runs repeated sequences compiled, as soon as a helper process has compiled them."""

import dataclasses
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from gt import config, logs
from gt.ops import TABLE, Spec
from gt.ops.dtypes import ITEMSIZE
from gt.stream.repeats import Repeat
from gt.stream.sequences import HotSequence
from gt.worker.compile.background import Background
from gt.worker.compile.compiled_code import CompiledCode, Invocation, PendingResult, Skipped
from gt.worker.compile.compiling import Compiler
from gt.worker.compile.graph import DRAWN, Graph, Layout, layout_of, specs_of
from gt.worker.engine.base import Engine
from gt.worker.limits.memory import Limit

_OFTEN = 3
"""How often the same is needed of a sequence before it is compiled so."""

_OTHERS = "other results of it were needed than usual"

_UNFIT = "its ops do not fit its tensors"

_TRIED = 20
"""After so many times a compiled sequence must have been no slower than it was eagerly."""

_MOST_VARIANTS = 8
"""So many shapes of one sequence are compiled; a loop that never has the same shapes again is not hot."""


@dataclasses.dataclass
class Variant:
    """A sequence on tensors of certain shapes and dtypes, with certain floats."""

    specs: tuple[Spec, ...]
    draws: list[tuple[int, Any]]
    """Which tensors from outside are random numbers, and what draws them, given the instructions."""
    needed: Counter[frozenset[int]]
    """How often the results of these steps were needed afterwards."""
    seconds: float = 0.0
    asked: "Compiled | None" = None
    """What the compiler has been asked for, and has not brought yet."""
    compiled: list["Compiled"] = dataclasses.field(default_factory=list)
    """One for each set of results that is needed often."""
    numbers: Any = None
    """Those it is given if none has changed."""
    best_eager: float = math.inf
    """The shortest time it took eagerly."""
    why_not: str = ""
    """Why it runs eagerly from now on, if it does."""

    def give_up(self, why: str) -> None:
        """Run it eagerly from now on."""
        self.why_not = why
        self.compiled.clear()

    def that_leaves(self, kept: Sequence[int]) -> "Compiled | None":
        """What was compiled and leaves these steps' results behind."""
        return next((one for one in self.compiled if one.kept.issuperset(kept)), None)


@dataclasses.dataclass
class Compiled:
    """A sequence as a compiled function."""

    key: str
    """Of its graph."""
    kept: frozenset[int]
    """The steps whose results are there after it."""
    outputs: tuple[int, ...]
    """Those that it returns itself."""
    nbytes: int
    """How much memory these take."""
    code: CompiledCode | None = None
    kinds: tuple[Any, ...] = ()
    """Of what it returns, as soon as it has: what the engine calls its kind, None if it has gaps."""
    best: float = math.inf
    """The shortest time it took."""
    replays: int = 0


class Call:
    """A compiled sequence, and all it needs to run."""

    __slots__ = (
        "_given",
        "_invocation",
        "compiled",
        "error",
        "freed",
        "layout",
        "made",
        "repeat",
        "results",
        "seconds",
        "variant",
    )

    def __init__(
        self,
        repeat: Repeat,
        layout: Layout,
        variant: Variant,
        compiled: Compiled,
        given: list[Any],
        numbers: Any,
    ) -> None:
        self.repeat = repeat
        self.layout = layout
        self.variant = variant
        self.compiled = compiled
        self.made = {n: given[n] for n, _ in layout.made}
        """Random numbers that are results too."""
        given.append(numbers)
        self._given = given
        self._invocation: Invocation | None = None
        self.freed = list(repeat.freed)
        """What is gone afterwards."""
        self.results: Sequence[Any] = ()
        self.error: Exception | None = None
        self.seconds = 0.0

    @property
    def expected(self) -> float:
        """The expected time in seconds; 0 if unknown."""
        best = min(self.compiled.best, self.variant.best_eager)
        return best if math.isfinite(best) else 0.0

    def run(self, alone: bool) -> None:
        """Compute; if this process is not `alone` with it, without keeping others from Python."""
        code = self.compiled.code
        assert code is not None
        start = time.perf_counter()
        try:
            if alone:
                self.results = code.run(self._given)
            else:
                invocation = Invocation(code, self._given)
                self.results = invocation.results(invocation.run())
        except Exception as error:  # noqa: BLE001 - what a compiled function raises: then it runs eagerly
            self.error = error.with_traceback(None)  # which would keep all that it was given
        self.seconds = time.perf_counter() - start

    def pending(self) -> dict[int, Any]:
        """By id, the tensors that exist after it: pending results, and random numbers, which exist now."""
        kept, made, compiled = set(self.repeat.kept), self.repeat.results, self.compiled
        found: dict[int, Any] = {
            made[place]: PendingResult(n, kind)
            for n, (place, kind) in enumerate(zip(compiled.outputs, compiled.kinds, strict=False))
            if place in kept and kind is not None
        }
        for n, place in self.layout.made:
            if place in kept:
                found[made[place]] = self.made[n]
        return found

    def start(self, background: Background, before: "Call | None" = None) -> None:
        """Begin to compute, after the call whose pending results are inputs, if any."""
        assert self.compiled.code is not None
        self._invocation = Invocation(
            self.compiled.code, self._given, None if before is None else before._invocation
        )
        background.start(self._invocation)

    def wait(self, background: Background) -> None:
        """Wait for the end of what was begun."""
        assert self._invocation is not None
        code, self.seconds = background.wait()
        try:
            self.results = self._invocation.results(code)
        except Exception as error:  # noqa: BLE001 - as above
            self.error = error.with_traceback(None)  # which would keep all that it was given


class _Path:
    """A sequence, and all that is known of how to run it."""

    def __init__(self, sequence: HotSequence, engine: Engine) -> None:
        self.sequence = sequence
        self.layout: Layout | None = None
        self.why_not = ""
        self.variants: dict[Any, Variant] = {}
        others = {step.op for step in sequence.steps} - TABLE.keys()
        try:
            if others:
                raise NotImplementedError(f"no graphs are made yet of {', '.join(sorted(others))}")
            self.layout = layout_of(sequence, engine.functions)
        except Exception as error:  # noqa: BLE001 - then it runs as it always did
            self.why_not = f"{type(error).__name__}: {error}"


class HotPaths:
    """What a worker knows of its clients' repetitions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._paths: dict[str, _Path] = {}
        self._variant: Variant | None = None
        """The one that ran last."""
        self._on_cpu = str(getattr(engine, "device", "cpu")).startswith("cpu")
        self.compiler = Compiler()
        self.replays = 0
        self.replayed_instructions = 0
        self.fallbacks: dict[str, int] = {}

    def ready(self, repeat: Repeat, values: dict[int, Any], limit: Limit | None = None) -> "Call | None":
        """A call that runs a repeat; None if it must run eagerly, after which `ran` must be called."""
        self._variant = None
        sequence = repeat.sequence
        path = self._paths.get(sequence.id)
        if path is None:
            path = self._paths[sequence.id] = _Path(sequence, self._engine)
            why = path.why_not and f", which cannot be compiled: {path.why_not}"
            logs.debug("compile", f"{sequence.id}: a repeat of {len(sequence)} ops came{why}")
        layout = path.layout
        if layout is None:
            return self._fall_back(path.why_not)
        if not self._on_cpu:
            return self._fall_back("what is compiled runs on a CPU, and this worker computes on a GPU")
        try:
            given = self._given(repeat, layout, values)
        except KeyError:
            return self._fall_back("an input has failed")
        key = self._key(repeat, layout, given)
        variant = path.variants.get(key)
        if variant is None:
            if len(path.variants) >= _MOST_VARIANTS:
                return self._fall_back("its shapes keep changing")
            shapes = [None if value is None else self._engine.spec(value) for value in given]
            try:
                variant = self._new_variant(repeat, layout, shapes)
            except Exception:  # noqa: BLE001 - then it fails as it always did, op by op
                return self._fall_back(_UNFIT)
            path.variants[key] = variant
        self._variant = variant
        compiled = variant.that_leaves(repeat.kept)
        if compiled is None:
            compiled = self._prepare(path, layout, variant, repeat.kept)
            if compiled is None:
                why = variant.why_not or (_OTHERS if variant.compiled else "")
                return self._fall_back(why) if why else None
        try:
            if limit is not None:
                limit.check(compiled.nbytes)
            return self._call(repeat, layout, variant, compiled, given)
        except MemoryError:
            return self._fall_back("its results would not fit into memory")

    def follow(self, repeat: Repeat, values: dict[int, Any], before: "Call") -> "Call | None":
        """The same of a sequence that comes while a call is under way: None if that has to end first."""
        path = self._paths.get(repeat.sequence.id)
        if path is None or path.layout is None or not before.compiled.kinds:
            return None
        try:
            pending = before.pending()
            there = {n: values[n] if n in values else pending[n] for n in repeat.inputs}
            given = self._given(repeat, path.layout, there)
            variant = path.variants.get(self._key(repeat, path.layout, given))
            compiled = variant and variant.that_leaves(repeat.kept)
            if variant is None or compiled is None:
                return None
            return self._call(repeat, path.layout, variant, compiled, given)
        except (KeyError, MemoryError):
            return None

    def _given(self, repeat: Repeat, layout: Layout, values: Mapping[int, Any]) -> list[Any]:
        """What a sequence is computed from; None for random numbers, which are still to be drawn."""
        inputs = repeat.inputs
        return [values[inputs[slot]] if slot >= 0 else None for slot, _ in layout.outside]

    def _key(self, repeat: Repeat, layout: Layout, given: list[Any]) -> Any:
        """What a sequence is compiled for, given its tensors."""
        kind = self._engine.kind
        kinds = [
            None if one is None else one.kind if type(one) is PendingResult else kind(one) for one in given
        ]
        return tuple(kinds), tuple([_attr(repeat, place, name) for place, name in layout.fixed])

    def _call(
        self, repeat: Repeat, layout: Layout, variant: Variant, compiled: Compiled, given: list[Any]
    ) -> "Call":
        dense = self._engine.dense
        for n, one in enumerate(given):
            if one is not None and type(one) is not PendingResult:
                given[n] = dense(one)
        for n, draw in variant.draws:
            given[n] = draw(repeat)
        if repeat.changed or variant.numbers is None:
            numbers = _vector([_attr(repeat, place, name) for place, name in layout.numbers])
            if not repeat.changed:
                variant.numbers = numbers
        else:
            numbers = variant.numbers
        return Call(repeat, layout, variant, compiled, given, numbers)

    def complete(self, call: "Call", values: dict[int, Any]) -> bool:
        """Put the results of a call where they belong. If it failed, False: then it has to run eagerly."""
        repeat, variant = call.repeat, call.variant
        self._variant = variant
        if isinstance(call.error, Skipped):
            self._fall_back("the compiled function before it failed")
            return False
        if call.error is not None:  # nothing has changed
            variant.give_up(f"{type(call.error).__name__}: {call.error}")
            logs.debug("compile", f"{repeat.sequence.id}: runs eagerly again: {variant.why_not}")
            self._fall_back("the compiled function failed")
            return False
        compiled = call.compiled
        if not compiled.kinds:
            compiled.kinds = tuple([self._kind_if_dense(one) for one in call.results])
        compiled.best = min(compiled.best, call.seconds)
        compiled.replays += 1
        if compiled.replays == _TRIED and compiled.best > 1.2 * variant.best_eager:
            variant.give_up("it is slower compiled")
            times = f"{compiled.best * 1000:.3f} ms, and {variant.best_eager * 1000:.3f} ms eagerly"
            logs.debug("compile", f"{repeat.sequence.id}: slower compiled: {times}; it runs eagerly again")
        kept, made = set(repeat.kept), repeat.results
        for place, result in zip(compiled.outputs, call.results, strict=True):
            if place in kept:
                values[made[place]] = result
        for n, place in call.layout.made:
            if place in kept:
                values[made[place]] = call.made[n]
        self.replays += 1
        self.replayed_instructions += len(repeat.sequence)
        return True

    def _kind_if_dense(self, value: Any) -> Any:
        return self._engine.kind(value) if self._engine.dense(value) is value else None

    def ran(self, seconds: float) -> None:
        """The sequence ran eagerly, and took so long."""
        if self._variant is not None:
            self._variant.seconds += seconds
            self._variant.best_eager = min(self._variant.best_eager, seconds)

    def _new_variant(self, repeat: Repeat, layout: Layout, shapes: Sequence[Spec | None]) -> Variant:
        """What shapes a sequence draws random numbers in, given those of its tensors from outside."""
        engine = self._engine
        specs = list(shapes)
        draws: list[tuple[int, Any]] = []
        for n, place in layout.made:
            specs[n] = TABLE[repeat.sequence.steps[place].op].infer((), repeat.attrs(place) or {})
            draws.append((n, partial(_make, engine, place)))
        if any(slot == DRAWN for slot, _ in layout.outside):
            made = specs_of(layout.nodes, [one or Spec((), "bool") for one in specs])
            for node, place, spec in zip(layout.nodes, layout.places, made, strict=True):
                if node.drawn:
                    draw: Any = engine.functions[node.op]
                    specs[-node.drawn - 1] = Spec(spec.shape, "bool")
                    draws.append((-node.drawn - 1, partial(_draw, draw.draw, place, tuple(spec.shape))))
        return Variant(tuple([one for one in specs if one is not None]), draws, Counter())

    def _fall_back(self, why: str) -> None:
        if why not in self.fallbacks:
            logs.debug("compile", f"a repeat runs eagerly: {why}")
        self.fallbacks[why] = self.fallbacks.get(why, 0) + 1

    def _worth(self, path: _Path) -> float:
        """For how many seconds a sequence must have run before it is compiled."""
        return 0.0 if path.sequence.explicit else config.compile_after()

    def _prepare(self, path: _Path, layout: Layout, variant: Variant, kept: Sequence[int]) -> Compiled | None:
        """See to it that a variant gets compiled, once that is worth it; what has been by now."""
        if variant.why_not:
            return None
        needed = frozenset(kept)
        if variant.asked is None:
            variant.needed[needed] += 1
            if variant.needed[needed] < _OFTEN or variant.seconds < self._worth(path):
                return None
            if len(variant.compiled) >= _MOST_VARIANTS:
                variant.give_up("other results of it are needed every time")
                return None
            node_of = {place: n for n, place in enumerate(layout.places)}
            outputs = tuple([place for place in sorted(needed) if place in node_of])
            graph = Graph(
                nodes=tuple(layout.nodes),
                inputs=tuple([(tuple(spec.shape), spec.dtype) for spec in variant.specs]),
                outputs=tuple([node_of[place] for place in outputs]),
                numbers=len(layout.numbers),
                threads=self._engine.threads,
            )
            try:
                made = specs_of(layout.nodes, variant.specs)
            except Exception:  # noqa: BLE001 - as above
                variant.give_up(_UNFIT)
                return None
            nbytes = sum(math.prod(made[n].shape) * ITEMSIZE[made[n].dtype] for n in graph.outputs)
            variant.asked = Compiled(graph.key, needed, outputs, nbytes)
            self.compiler.request(graph)
            source = "loading it from the cache" if self.compiler.cached(graph.key) else "compiling it"
            ran = f"after {variant.seconds:.2f} s of running it eagerly"
            logs.debug(
                "compile", f"{path.sequence.id}: {len(path.sequence)} ops, {source} as {graph.key}, {ran}"
            )
        asked = variant.asked
        found = self.compiler.get(asked.key)
        if found is None:
            return None
        variant.asked = None
        if isinstance(found, str):
            variant.give_up(found)
            logs.debug("compile", f"{path.sequence.id}: not compiled: {found}")
            return None
        asked.code = found
        variant.compiled.append(asked)
        took = self.compiler.seconds(asked.key)
        logs.debug("compile", f"{path.sequence.id}: compiled, {len(path.sequence)} ops, in {took:.2f} s")
        return asked if asked.kept.issuperset(kept) else None

    def get_stats(self, total: int) -> dict[str, Any]:
        """What was compiled and gained, out of so many instructions."""
        return {
            **self.compiler.get_stats(),
            "replays": self.replays,
            "hit_rate": round(self.replayed_instructions / max(1, total), 3),
            "fallbacks": dict(self.fallbacks),
        }


def _vector(numbers: Sequence[float]) -> Any:
    import torch

    return torch.tensor(numbers, dtype=torch.float64)


def _attr(repeat: Repeat, place: int, name: str) -> Any:
    attrs = repeat.attrs(place)
    assert attrs is not None
    return attrs[name]


def _make(engine: Engine, place: int, repeat: Repeat) -> Any:
    """A tensor of random numbers."""
    return engine.run(repeat.sequence.steps[place].op, [], repeat.attrs(place))


def _draw(draw: Any, place: int, shape: tuple[int, ...], repeat: Repeat) -> Any:
    """The random numbers that an op needs besides its tensors."""
    return draw(shape, **(repeat.attrs(place) or {}))
