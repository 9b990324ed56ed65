"""Hot paths: what a client repeats runs compiled, as soon as somebody has compiled it."""

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from gt import config
from gt.ops import TABLE, Spec
from gt.ops.dtypes import ITEMSIZE
from gt.transport.repeats import HotSequence, Repeat
from gt.worker.compiling import Compiler
from gt.worker.engine.base import Engine
from gt.worker.graph import DRAWN, Graph, Layout, layout_of, specs_of
from gt.worker.memory import Limit

_OFTEN = 3
"""How often the same is needed of a sequence before it is compiled so."""

_MOST_VARIANTS = 8
"""So many shapes of one sequence are compiled; a loop that never has the same shapes again is not hot."""


@dataclasses.dataclass
class Variant:
    """A sequence on tensors of certain shapes and dtypes, with certain fractions."""

    specs: tuple[Spec, ...]
    draws: list[tuple[int, Any]]
    """Which tensors from outside are random numbers, and what draws them, given the instructions."""
    needed: Counter[frozenset[int]]
    """How often the results of these steps were needed afterwards."""
    seconds: float = 0.0
    key: str = ""
    """Of the graph that was sent to the compiler."""
    asked: tuple[int, ...] = ()
    asked_for: frozenset[int] = frozenset()
    """The steps whose results it is to return, and those that are to be there."""
    run: Any = None
    outputs: tuple[int, ...] = ()
    """The steps whose results `run` returns."""
    kept: frozenset[int] = frozenset()
    """The steps whose results are there after it."""
    compiled: int = 0
    """How often, because more was needed."""
    nbytes: int = 0
    """How much memory these take."""
    why_not: str = ""


class _Path:
    """A sequence, and all that is known of how to run it."""

    def __init__(self, sequence: HotSequence, engine: Engine) -> None:
        self.sequence = sequence
        self.layout: Layout | None = None
        self.why_not = ""
        self.variants: dict[Any, Variant] = {}
        try:
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
        self.compiler = Compiler()
        self.replays = 0
        self.replayed_instructions = 0
        self.fallbacks: dict[str, int] = {}

    def run(self, repeat: Repeat, values: dict[int, Any], limit: Limit | None = None) -> bool:
        """Run a sequence once more; False if it has to run eagerly. Then `ran` is to be called."""
        self._variant = None
        sequence = repeat.sequence
        path = self._paths.get(sequence.id)
        if path is None:
            path = self._paths[sequence.id] = _Path(sequence, self._engine)
        layout = path.layout
        if layout is None:
            return self._fall_back(path.why_not)
        spec, inputs = self._engine.spec, repeat.inputs
        try:
            given = [values[inputs[slot]] if slot >= 0 else None for slot, _ in layout.outside]
        except KeyError:
            return self._fall_back("an input has failed")
        shapes = tuple([None if value is None else spec(value) for value in given])
        fixed = tuple([_attr(repeat, place, name) for place, name in layout.fixed])
        variant = path.variants.get((shapes, fixed))
        if variant is None:
            if len(path.variants) >= _MOST_VARIANTS:
                return self._fall_back("its shapes keep changing")
            variant = path.variants[shapes, fixed] = self._new_variant(repeat, layout, shapes)
        self._variant = variant
        if variant.run is None:
            self._prepare(path, layout, variant, repeat.kept)
            if variant.run is None:
                return False
        if not variant.kept.issuperset(repeat.kept):
            self._prepare(path, layout, variant, repeat.kept)
            return self._fall_back("more of its results were needed than before")
        try:
            if limit is not None:
                limit.check(variant.nbytes)
            for n, draw in variant.draws:
                given[n] = draw(repeat)
            results = variant.run(given, [_attr(repeat, place, name) for place, name in layout.numbers])
        except MemoryError:
            return self._fall_back("its results would not fit into memory")
        except Exception as error:  # noqa: BLE001 - nothing has changed, so it can run eagerly
            variant.why_not, variant.run = f"{type(error).__name__}: {error}", None
            return self._fall_back("the compiled function failed")
        kept, made = set(repeat.kept), repeat.results
        for place, result in zip(variant.outputs, results, strict=True):
            if place in kept:
                values[made[place]] = result
        for n, place in layout.made:
            if place in kept:
                values[made[place]] = given[n]
        self.replays += 1
        self.replayed_instructions += len(sequence)
        return True

    def ran(self, seconds: float) -> None:
        """The sequence ran eagerly, and took so long."""
        if self._variant is not None:
            self._variant.seconds += seconds

    def _new_variant(self, repeat: Repeat, layout: Layout, shapes: tuple[Spec | None, ...]) -> Variant:
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

    def _fall_back(self, why: str) -> bool:
        self.fallbacks[why] = self.fallbacks.get(why, 0) + 1
        return False

    def _prepare(self, path: _Path, layout: Layout, variant: Variant, kept: Sequence[int]) -> None:
        """See to it that a variant gets compiled, once that is worth it."""
        if variant.why_not:
            return
        if variant.key:
            self._look(path, variant)
            return
        needed = frozenset(kept)
        variant.needed[needed] += 1
        if variant.needed[needed] < _OFTEN or variant.seconds < config.compile_after():
            return
        if variant.compiled >= _MOST_VARIANTS:
            variant.why_not = "other results of it are needed every time"
            return
        node_of = {place: n for n, place in enumerate(layout.places)}
        wanted = frozenset().union(*[one for one, times in variant.needed.items() if times >= _OFTEN])
        variant.asked = tuple([place for place in sorted(wanted) if place in node_of])
        variant.asked_for = wanted
        graph = Graph(
            nodes=tuple(layout.nodes),
            inputs=tuple([(tuple(spec.shape), spec.dtype) for spec in variant.specs]),
            outputs=tuple([node_of[place] for place in variant.asked]),
            numbers=len(layout.numbers),
        )
        variant.nbytes = sum(
            math.prod(spec.shape) * ITEMSIZE[spec.dtype]
            for n, spec in enumerate(specs_of(layout.nodes, variant.specs))
            if n in graph.outputs
        )
        variant.key = graph.key
        config.debug("compile", f"{path.sequence.id}: {len(path.sequence)} ops, asking for {graph.key}")
        self.compiler.request(graph)
        self._look(path, variant)

    def _look(self, path: _Path, variant: Variant) -> None:
        """Whether what was asked for is compiled by now."""
        found = self.compiler.get(variant.key)
        if found is None:
            return
        variant.key = ""
        if isinstance(found, str):
            variant.why_not = found
            config.debug("compile", f"{path.sequence.id}: not compiled: {found}")
            return
        variant.run, variant.outputs, variant.kept = found, variant.asked, variant.asked_for
        variant.compiled += 1
        config.debug("compile", f"{path.sequence.id}: compiled, {len(path.sequence)} ops")

    def get_stats(self, total: int) -> dict[str, Any]:
        """What was compiled and gained, out of so many instructions."""
        return {
            **self.compiler.get_stats(),
            "replays": self.replays,
            "hit_rate": round(self.replayed_instructions / max(1, total), 3),
            "fallbacks": dict(self.fallbacks),
        }


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
