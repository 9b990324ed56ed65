"""Hot paths: what a client repeats runs compiled, as soon as somebody has compiled it."""

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

from gt import config
from gt.ops import TABLE, Spec
from gt.transport.protocol import Op
from gt.worker.compiling import Compiler
from gt.worker.engine.base import Engine
from gt.worker.graph import Graph, Layout, layout_of, specs_of
from gt.worker.hotpath_detector import HotSequence

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

    def run(self, sequence: HotSequence, ops: Sequence[Op], values: dict[int, Any], freed: set[int]) -> bool:
        """Run a sequence that came whole; False if it has to run eagerly. Then `ran` is to be called."""
        self._variant = None
        path = self._paths.get(sequence.id)
        if path is None:
            path = self._paths[sequence.id] = _Path(sequence, self._engine)
        layout = path.layout
        if layout is None:
            return self._fall_back(path.why_not)
        spec = self._engine.spec
        try:
            given = [values[ops[place].inputs[k]] if k >= 0 else None for place, k in layout.outside]
        except KeyError:
            return self._fall_back("an input has failed")
        shapes = tuple([None if value is None else spec(value) for value in given])
        fixed = tuple([_attr(ops[place], name) for place, name in layout.fixed])
        variant = path.variants.get((shapes, fixed))
        if variant is None:
            if len(path.variants) >= _MOST_VARIANTS:
                return self._fall_back("its shapes keep changing")
            variant = path.variants[shapes, fixed] = self._new_variant(ops, layout, shapes)
        self._variant = variant
        needed = [n for n, op in enumerate(ops) if op.result not in freed]
        if variant.run is None:
            self._prepare(path, layout, variant, needed)
            if variant.run is None:
                return False
        if not variant.needed.issuperset(needed):
            variant.needed.update(needed)
            variant.run, variant.key = None, ""
            return self._fall_back("more of its results were needed than before")
        try:
            for n, draw in variant.draws:
                given[n] = draw(ops)
            results = variant.run(given, [_attr(ops[place], name) for place, name in layout.numbers])
        except Exception as error:  # noqa: BLE001 - nothing has changed, so it can run eagerly
            variant.why_not, variant.run = f"{type(error).__name__}: {error}", None
            return self._fall_back("the compiled function failed")
        for place, result in zip(variant.outputs, results, strict=True):
            number = ops[place].result
            if number not in freed:
                values[number] = result
        for (place, k), value in zip(layout.outside, given, strict=False):
            if k == -1 and ops[place].result not in freed:
                values[ops[place].result] = value
        self.replays += 1
        self.replayed_instructions += len(ops)
        return True

    def ran(self, seconds: float) -> None:
        """The sequence ran eagerly, and took so long."""
        if self._variant is not None:
            self._variant.runs += 1
            self._variant.seconds += seconds

    def _new_variant(self, ops: Sequence[Op], layout: Layout, shapes: tuple[Spec | None, ...]) -> Variant:
        """What shapes a sequence draws random numbers in, given those of its tensors from outside."""
        engine = self._engine
        specs = list(shapes)
        draws: list[tuple[int, Any]] = []
        for n, (place, k) in enumerate(layout.outside):
            if k == -1:
                specs[n] = TABLE[ops[place].op].infer((), ops[place].attrs or {})
                draws.append((n, partial(_make, engine, place)))
        if any(k == -2 for _, k in layout.outside):
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
        variant.key = graph.key
        config.debug("compile", f"{path.sequence.id}: {len(path.sequence)} ops, asking for {graph.key}")
        self.compiler.request(graph)

    def get_stats(self) -> dict[str, Any]:
        """What was compiled and gained."""
        return {
            **self.compiler.get_stats(),
            "replays": self.replays,
            "fallbacks": dict(self.fallbacks),
        }


def _attr(op: Op, name: str) -> Any:
    assert op.attrs is not None
    return op.attrs[name]


def _make(engine: Engine, place: int, ops: Sequence[Op]) -> Any:
    """A tensor of random numbers."""
    return engine.run(ops[place].op, [], ops[place].attrs)


def _draw(draw: Any, place: int, shape: tuple[int, ...], ops: Sequence[Op]) -> Any:
    """The random numbers that an op needs besides its tensors."""
    attrs = ops[place].attrs or {}
    return draw(shape, **attrs)
