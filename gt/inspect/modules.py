"""The time that each module of a PyTorch program takes: the modules on a tape as a tree.

The page has the same tree (frontend/src/cluster/modules.ts).
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from gt.inspect.tape import Span

MAX_ROWS = 20
"""How many rows a table has."""
NO_MODULE = "(no module)"
"""The name of ops that no module issued."""


class Module(msgspec.Struct):
    """A module with all its submodules; a chain of modules with one submodule each is one: `model.layers`."""

    path: str
    name: str
    """The part of its path that its parent's does not have."""
    depth: int = 0
    instructions: int = 0
    forward: float = 0.0
    """Seconds on workers in forward passes."""
    backward: float = 0.0
    """Seconds on workers in backward passes, recomputed modules included."""
    own: bool = False
    """Whether it issued instructions itself."""
    parts: "dict[str, Module]" = {}

    @property
    def seconds(self) -> float:
        """Seconds on workers, forward and backward."""
        return self.forward + self.backward


def module_rows(spans: Iterable[Span], most: int = MAX_ROWS) -> list[Module]:
    """A table of a tape's modules, of `most` rows: a submodule below its module, the slowest first.

    Modules that take longest are shown with their submodules, as long as there is room.
    """
    root = Module("", "")
    for span in spans:
        if span.is_op:
            _add(root, span)
    tops = _parts(root)
    shown = {id(one) for one in tops}
    count = len(tops)
    waiting = list(tops)
    while waiting:
        largest = max(waiting, key=lambda one: one.seconds)
        waiting.remove(largest)
        parts = _parts(largest)
        if parts and count + len(parts) <= most:
            shown.update(map(id, parts))
            count += len(parts)
            waiting += parts
    rows: list[Module] = []

    def list_parts(modules: Sequence[Module], depth: int) -> None:
        for one in modules:
            if id(one) in shown:
                one.depth = depth
                rows.append(one)
                list_parts(_parts(one), depth + 1)

    list_parts(tops, 0)
    return rows[:most]


def _add(root: Module, span: Span) -> None:
    module, path = root, ""
    for name in span.module.split(".") if span.module else [NO_MODULE]:
        path = f"{path}.{name}" if path else name
        if name not in module.parts:
            module.parts[name] = Module(path, name)
        module = module.parts[name]
        module.instructions += 1
        if span.phase:
            module.backward += span.end - span.start
        else:
            module.forward += span.end - span.start
    module.own = True


def _parts(module: Module) -> list[Module]:
    """A module's submodules, the slowest first; where there is only one, those of that one."""
    return sorted(map(_joined, module.parts.values()), key=lambda one: -one.seconds)


def _joined(module: Module) -> Module:
    while len(module.parts) == 1 and not module.own:
        (only,) = module.parts.values()
        only.name = only.path[len(module.path) - len(module.name) :]
        module = only
    return module


def matcher(wanted: str, spans: Iterable[Span]) -> Callable[[str], bool]:
    """A function that returns whether a path is of a module of this name, or below it.

    A name is one or several parts of a path (`layers.0`) or, if no module has it, the beginning of one.
    """
    whole = f".{wanted}."
    if any(whole in f".{span.module}." for span in spans):
        return lambda path: whole in f".{path}."
    return lambda path: f".{wanted}" in f".{path}"
