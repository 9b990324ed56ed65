"""Hot paths: what a client repeats runs compiled, as soon as somebody has compiled it."""

import dataclasses
import math
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

_MOST_VARIANTS = 8
"""So many shapes of one sequence are compiled; a loop that never has the same shapes again is not hot."""


@dataclasses.dataclass
class Variant:
    """A sequence on tensors of certain shapes and dtypes, with certain fractions."""

    specs: tuple[Spec, ...]
    draws: list[tuple[int, Any]]
    """Which tensors from outside are random numbers, and what draws them, given the instructions."""
    needed: set[int]
    """The steps whose results somebody needed afterwards, so far."""
    runs: int = 0
    seconds: float = 0.0
    key: str = ""
    """Of the graph that was sent to the compiler."""
    run: Any = None
    outputs: tuple[int, ...] = ()
    """The steps whose results `run` returns."""
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
        if not variant.needed.issuperset(repeat.kept):
            variant.needed.update(repeat.kept)
            variant.run, variant.key = None, ""
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
            self._variant.runs += 1
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
        return Variant(tuple([one for one in specs if one is not None]), draws, set())

    def _fall_back(self, why: str) -> bool:
        self.fallbacks[why] = self.fallbacks.get(why, 0) + 1
        return False

    def _prepare(self, path: _Path, layout: Layout, variant: Variant, needed: Sequence[int]) -> None:
        """See to it that a variant gets compiled, once that is worth it."""
        if variant.why_not:
            return
        if variant.key:
            found = self.compiler.get(variant.key)
            if found is None:
                return
            if isinstance(found, str):
                variant.why_not = found
                config.debug("compile", f"{path.sequence.id}: not compiled: {found}")
                return
            variant.run = found
            config.debug("compile", f"{path.sequence.id}: compiled, {len(path.sequence)} ops")
            return
        variant.needed.update(needed)
        if variant.runs < 3 or variant.seconds < config.compile_after():
            return
        node_of = {place: n for n, place in enumerate(layout.places)}
        variant.outputs = tuple([place for place in sorted(variant.needed) if place in node_of])
        graph = Graph(
            nodes=tuple(layout.nodes),
            inputs=tuple([(tuple(spec.shape), spec.dtype) for spec in variant.specs]),
            outputs=tuple([node_of[place] for place in variant.outputs]),
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
