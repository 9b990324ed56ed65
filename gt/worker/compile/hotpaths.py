"""Hot paths: runs repeated sequences compiled, as soon as a helper process has compiled them."""

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
from gt.worker.compile.compiled_code import Invocation, PendingResult, Skipped
from gt.worker.compile.compiling import Compiler
from gt.worker.compile.graph import DRAWN, Graph, GraphMapping, mapping_of, specs_of
from gt.worker.compile.variants import Compiled, Variant
from gt.worker.engine.base import Engine
from gt.worker.limits.memory import Limit

_MIN_OCCURRENCES = 3
"""A variant is compiled for a set of kept results after this many occurrences with that set."""

_OTHER_RESULTS = "it was compiled for other kept results"

_INVALID_INPUTS = "its ops cannot be applied to its inputs"

_TRIAL_CALLS = 20
"""After this many calls, the time of a compiled sequence is compared with its eager time."""

_MAX_VARIANTS = 8
"""The largest number of compiled variants (shapes, dtypes, fixed floats) of one sequence."""


class Call:
    """One call of a compiled sequence, with its inputs and, afterwards, its results."""

    __slots__ = (
        "_given",
        "_invocation",
        "compiled",
        "error",
        "freed",
        "made",
        "mapping",
        "repeat",
        "results",
        "seconds",
        "variant",
    )

    def __init__(
        self,
        repeat: Repeat,
        mapping: GraphMapping,
        variant: Variant,
        compiled: Compiled,
        given: list[Any],
        numbers: Any,
    ) -> None:
        self.repeat = repeat
        self.mapping = mapping
        self.variant = variant
        self.compiled = compiled
        self.made = {n: given[n] for n, _ in mapping.made}
        """Random numbers that are results of the sequence, by index of the input."""
        given.append(numbers)
        self._given = given
        self._invocation: Invocation | None = None
        self.freed = list(repeat.freed)
        """The tensors that are freed after it."""
        self.results: Sequence[Any] = ()
        self.error: Exception | None = None
        self.seconds = 0.0

    @property
    def expected(self) -> float:
        """The expected duration in seconds; 0 if unknown."""
        best = min(self.compiled.best, self.variant.best_eager)
        return best if math.isfinite(best) else 0.0

    def run(self, alone: bool) -> None:
        """Call the compiled code. Unless `alone`, the interpreter lock is released meanwhile."""
        code = self.compiled.code
        assert code is not None
        start = time.perf_counter()
        try:
            if alone:
                self.results = code.run(self._given)
            else:
                invocation = Invocation(code, self._given)
                self.results = invocation.results(invocation.run())
        except Exception as error:  # noqa: BLE001 - any error: then it runs eagerly
            self.error = error.with_traceback(None)  # which would keep the inputs alive
        self.seconds = time.perf_counter() - start

    def pending(self) -> dict[int, Any]:
        """By id, the tensors that the call leaves: pending results, and random numbers, which exist
        already."""
        kept, made, compiled = set(self.repeat.kept), self.repeat.results, self.compiled
        found: dict[int, Any] = {
            made[index]: PendingResult(n, kind)
            for n, (index, kind) in enumerate(zip(compiled.outputs, compiled.kinds, strict=False))
            if index in kept and kind is not None
        }
        for n, index in self.mapping.made:
            if index in kept:
                found[made[index]] = self.made[n]
        return found

    def start(self, background: Background, before: "Call | None" = None) -> None:
        """Start the call in the background, after the call whose pending results are its inputs, if any."""
        assert self.compiled.code is not None
        self._invocation = Invocation(
            self.compiled.code, self._given, None if before is None else before._invocation
        )
        background.start(self._invocation)

    def wait(self, background: Background) -> None:
        """Wait for the end of the call in the background."""
        assert self._invocation is not None
        code, self.seconds = background.wait()
        try:
            self.results = self._invocation.results(code)
        except Exception as error:  # noqa: BLE001 - as above
            self.error = error.with_traceback(None)  # which would keep the inputs alive


class _Path:
    """A sequence, its graph mapping, and its variants."""

    def __init__(self, sequence: HotSequence, engine: Engine) -> None:
        self.sequence = sequence
        self.mapping: GraphMapping | None = None
        self.refusal = ""
        self.variants: dict[Any, Variant] = {}
        try:
            self.mapping = mapping_of(sequence, engine.functions)
        except Exception as error:  # noqa: BLE001 - then it runs eagerly
            self.refusal = f"{type(error).__name__}: {error}"


class HotPaths:
    """The compiled sequences of a worker: decides when to compile, and makes calls."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._paths: dict[str, _Path] = {}
        self._variant: Variant | None = None
        """The variant of the last repeat."""
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
            why = path.refusal and f", which cannot be compiled: {path.refusal}"
            logs.debug("compile", f"{sequence.id}: first repeat of {len(sequence)} ops{why}")
        mapping = path.mapping
        if mapping is None:
            return self._fall_back(path.refusal)
        if not self._on_cpu:
            return self._fall_back("compiled code runs on a CPU, but this worker computes on a GPU")
        try:
            given = self._given(repeat, mapping, values)
        except KeyError:
            return self._fall_back("an input has failed")
        key = self._key(repeat, mapping, given)
        variant = path.variants.get(key)
        if variant is None:
            if len(path.variants) >= _MAX_VARIANTS:
                return self._fall_back("its shapes keep changing")
            try:
                shapes = [None if value is None else self._engine.spec(value) for value in given]
                variant = self._new_variant(repeat, mapping, shapes)
            except Exception:  # noqa: BLE001 - then the error is reported op by op
                return self._fall_back(_INVALID_INPUTS)
            path.variants[key] = variant
        self._variant = variant
        compiled = variant.code_for(repeat.kept)
        if compiled is None:
            compiled = self._prepare(path, mapping, variant, repeat.kept)
            if compiled is None:
                why = variant.refusal or (_OTHER_RESULTS if variant.compiled else "")
                return self._fall_back(why) if why else None
        try:
            if limit is not None:
                limit.check(compiled.nbytes)
            return self._call(repeat, mapping, variant, compiled, given)
        except MemoryError:
            return self._fall_back("not enough memory for its results")

    def follow(self, repeat: Repeat, values: dict[int, Any], before: "Call") -> "Call | None":
        """As `ready`, for a repeat after a call in the background; None if that call must end first."""
        path = self._paths.get(repeat.sequence.id)
        if path is None or path.mapping is None or not before.compiled.kinds:
            return None
        try:
            pending = before.pending()
            there = {n: values[n] if n in values else pending[n] for n in repeat.inputs}
            given = self._given(repeat, path.mapping, there)
            variant = path.variants.get(self._key(repeat, path.mapping, given))
            compiled = variant and variant.code_for(repeat.kept)
            if variant is None or compiled is None:
                return None
            return self._call(repeat, path.mapping, variant, compiled, given)
        except (KeyError, MemoryError):
            return None

    def _given(self, repeat: Repeat, mapping: GraphMapping, values: Mapping[int, Any]) -> list[Any]:
        """The inputs of the graph; None in index of random numbers, which are drawn later."""
        inputs = repeat.inputs
        return [values[inputs[slot]] if slot >= 0 else None for slot, _ in mapping.outside]

    def _key(self, repeat: Repeat, mapping: GraphMapping, given: list[Any]) -> Any:
        """The key of a variant: the kinds of its inputs and the floats that are part of the graph."""
        kind = self._engine.kind
        kinds = [
            None if one is None else one.kind if type(one) is PendingResult else kind(one) for one in given
        ]
        fixed = [_attr(repeat, index, name) for index, name in mapping.fixed]
        return tuple(kinds), tuple([number or repr(number) for number in fixed])  # for Python, 0.0 is -0.0

    def _call(
        self, repeat: Repeat, mapping: GraphMapping, variant: Variant, compiled: Compiled, given: list[Any]
    ) -> "Call":
        dense = self._engine.dense
        for n, one in enumerate(given):
            if one is not None and type(one) is not PendingResult:
                given[n] = dense(one)
        for n, draw in variant.draws:
            given[n] = draw(repeat)
        sequence, numbers, vector = variant.numbers
        if sequence is not repeat.sequence:
            numbers = [(repeat.sequence.steps[index].attrs or {})[name] for index, name in mapping.numbers]
            vector = _vector(numbers)
            variant.numbers = repeat.sequence, numbers, vector
        if repeat.changed:
            numbers = numbers.copy()
            for index, attrs in repeat.changed.items():
                for n, name in mapping.numbers_of.get(index, ()):
                    numbers[n] = attrs[name]
            vector = _vector(numbers)
        return Call(repeat, mapping, variant, compiled, given, vector)

    def complete(self, call: "Call", values: dict[int, Any]) -> bool:
        """Store the results of a call. Returns False if it failed and the repeat must run eagerly."""
        repeat, variant = call.repeat, call.variant
        self._variant = variant
        if isinstance(call.error, Skipped):
            self._fall_back("the compiled function before it failed")
            return False
        if call.error is not None:  # nothing has changed
            variant.give_up(f"{type(call.error).__name__}: {call.error}")
            logs.debug("compile", f"{repeat.sequence.id}: runs eagerly again: {variant.refusal}")
            self._fall_back("the compiled function failed")
            return False
        compiled = call.compiled
        if not compiled.kinds:
            compiled.kinds = tuple([self._kind_if_dense(one) for one in call.results])
        compiled.best = min(compiled.best, call.seconds)
        compiled.replays += 1
        if compiled.replays == _TRIAL_CALLS and compiled.best > 1.2 * variant.best_eager:
            variant.give_up("it is slower compiled")
            times = f"{compiled.best * 1000:.3f} ms, and {variant.best_eager * 1000:.3f} ms eagerly"
            logs.debug("compile", f"{repeat.sequence.id}: slower compiled: {times}; it runs eagerly again")
        kept, made = set(repeat.kept), repeat.results
        for index, result in zip(compiled.outputs, call.results, strict=True):
            if index in kept:
                values[made[index]] = result
        for n, index in call.mapping.made:
            if index in kept:
                values[made[index]] = call.made[n]
        self.replays += 1
        self.replayed_instructions += len(repeat.sequence)
        return True

    def _kind_if_dense(self, value: Any) -> Any:
        return self._engine.kind(value) if self._engine.dense(value) is value else None

    def ran(self, seconds: float) -> None:
        """Account for an eager run of the last repeat, in seconds."""
        if self._variant is not None:
            self._variant.seconds += seconds
            self._variant.best_eager = min(self._variant.best_eager, seconds)

    def _new_variant(self, repeat: Repeat, mapping: GraphMapping, shapes: Sequence[Spec | None]) -> Variant:
        """A variant for inputs of these specs, with the shapes of the random numbers it draws."""
        engine, nodes = self._engine, mapping.nodes_for(repeat)
        specs = list(shapes)
        draws: list[tuple[int, Any]] = []
        for n, index in mapping.made:
            specs[n] = TABLE[repeat.sequence.steps[index].op].infer((), repeat.attrs(index) or {})
            draws.append((n, partial(_make, engine, index)))
        if any(slot == DRAWN for slot, _ in mapping.outside):
            made = specs_of(nodes, [one or Spec((), "bool") for one in specs], engine)
            for node, index, spec in zip(nodes, mapping.steps, made, strict=True):
                if node.drawn:
                    draw: Any = engine.functions[node.op]
                    specs[-node.drawn - 1] = Spec(spec.shape, "bool")
                    draws.append((-node.drawn - 1, partial(_draw, draw.draw, index, tuple(spec.shape))))
        return Variant(tuple([one for one in specs if one is not None]), nodes, draws, Counter())

    def _fall_back(self, why: str) -> None:
        if why not in self.fallbacks:
            logs.debug("compile", f"a repeat runs eagerly: {why}")
        self.fallbacks[why] = self.fallbacks.get(why, 0) + 1

    def _min_seconds(self, path: _Path) -> float:
        """How many seconds a sequence must have run eagerly before it is compiled."""
        seconds = config.compile_after()
        return 0.0 if path.sequence.explicit and math.isfinite(seconds) else seconds

    def _prepare(
        self, path: _Path, mapping: GraphMapping, variant: Variant, kept: Sequence[int]
    ) -> Compiled | None:
        """Request the compilation of a variant once it pays; returns the compiled code if it is ready."""
        if variant.refusal:
            return None
        needed = frozenset(kept)
        if variant.requested is None:
            variant.needed[needed] += 1
            if variant.needed[needed] < _MIN_OCCURRENCES or variant.seconds < self._min_seconds(path):
                return None
            if len(variant.compiled) >= _MAX_VARIANTS:
                variant.give_up("different results are kept every time")
                return None
            node_of = {index: n for n, index in enumerate(mapping.steps)}
            outputs = tuple([index for index in sorted(needed) if index in node_of])
            graph = Graph(
                nodes=variant.nodes,
                inputs=tuple([(tuple(spec.shape), spec.dtype) for spec in variant.specs]),
                outputs=tuple([node_of[index] for index in outputs]),
                numbers=len(mapping.numbers),
                threads=self._engine.threads,
            )
            try:
                made = specs_of(variant.nodes, variant.specs, self._engine)
            except Exception:  # noqa: BLE001 - as above
                variant.give_up(_INVALID_INPUTS)
                return None
            if any(isinstance(made[n], tuple) for n in graph.outputs):
                variant.give_up("the value of an op with several results is kept")
                return None
            nbytes = sum(math.prod(made[n].shape) * ITEMSIZE.get(made[n].dtype, 16) for n in graph.outputs)
            variant.requested = Compiled(graph.key, needed, outputs, nbytes)
            self.compiler.request(graph)
            source = "loading it from the cache" if self.compiler.cached(graph.key) else "compiling it"
            ran = f"after {variant.seconds:.2f} s of running it eagerly"
            logs.debug(
                "compile", f"{path.sequence.id}: {len(path.sequence)} ops, {source} as {graph.key}, {ran}"
            )
        requested = variant.requested
        found = self.compiler.get(requested.key)
        if found is None:
            return None
        variant.requested = None
        if isinstance(found, str):
            variant.give_up(found)
            logs.debug("compile", f"{path.sequence.id}: not compiled: {found}")
            return None
        requested.code = found
        variant.compiled.append(requested)
        took = self.compiler.seconds(requested.key)
        logs.debug("compile", f"{path.sequence.id}: compiled, {len(path.sequence)} ops, in {took:.2f} s")
        return requested if requested.kept.issuperset(kept) else None

    def get_stats(self, total: int) -> dict[str, Any]:
        """Counts of compilations and calls; `total` is the number of all executed instructions."""
        return {
            **self.compiler.get_stats(),
            "replays": self.replays,
            "hit_rate": round(self.replayed_instructions / max(1, total), 3),
            "fallbacks": dict(self.fallbacks),
        }


def _vector(numbers: Sequence[float]) -> Any:
    import torch

    return torch.tensor(numbers, dtype=torch.float64)


def _attr(repeat: Repeat, index: int, name: str) -> Any:
    attrs = repeat.attrs(index)
    assert attrs is not None
    return attrs[name]


def _make(engine: Engine, index: int, repeat: Repeat) -> Any:
    """A tensor of random numbers."""
    return engine.run(repeat.sequence.steps[index].op, [], repeat.attrs(index))


def _draw(draw: Any, index: int, shape: tuple[int, ...], repeat: Repeat) -> Any:
    """The random numbers that an op needs besides its tensors."""
    return draw(shape, **(repeat.attrs(index) or {}))
