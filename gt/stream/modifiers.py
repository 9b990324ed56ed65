"""Stream modifiers: functions from instructions to instructions, at client, dispatcher and worker.

    class Counter:
        def __init__(self):
            self.seen = 0

        def process(self, cmd):
            self.seen += 1
            yield cmd

        def get_stats(self):
            return {"seen": self.seen}

At every layer each client has instances of its own, so a modifier sees the stream of one client only.
See docs/writing-a-stream-modifier.md.
"""

import copy
import importlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec
import numpy as np

from gt import logs
from gt.stream.instruction_table import CLIENT, DISPATCHER, check_issued, encode, made_by
from gt.stream.instructions import Exchange, LocalInstruction, Lost, Op
from gt.stream.tensor_ids import Source, fresh_id, using

__all__ = ["StreamModifier", "fresh_id"]

MAX_STATS = 1 << 20
"""How many bytes the statistics of one modifier may take as a message."""


class StreamModifier(Protocol):
    """Changes a stream, one instruction at a time and without buffering any."""

    def process(self, cmd: Any) -> Iterator[Any]:
        """Yield the instructions that replace this one: itself, others, several or none."""
        ...

    def get_stats(self) -> dict[str, Any]:
        """Statistics, as a dictionary of plain values."""
        ...


ModifierLike = StreamModifier | Callable[[], StreamModifier] | str
"""The forms in which users pass a modifier: a class, or another callable that makes one; an instance; or the
name of any of these, as `package.module:Class`."""

LAYERS = ("client", "dispatcher", "worker")

Modifiers = Mapping[str, Sequence[ModifierLike]]
"""The modifiers of each layer, in order."""


def check(modifiers: Modifiers | None) -> Modifiers:
    """The modifiers by layer. Raises ValueError for an unknown layer."""
    for layer in modifiers or {}:
        if layer not in LAYERS:
            raise ValueError(f"the layers of modifiers are {', '.join(LAYERS)}, but got {layer!r}")
    return modifiers or {}


def names(modifiers: Sequence[ModifierLike]) -> list[str]:
    """Modifiers by name, as another process needs them."""
    for one in modifiers:
        if not isinstance(one, str):
            raise TypeError(
                f"a modifier for another process must be a name, 'package.module:Class', but got {one!r}"
            )
    return [one for one in modifiers if isinstance(one, str)]


def load(name: str) -> Any:
    """Import an object by its name on the command line, `package.module:Class`."""
    module, _, path = name.partition(":")
    if not path:
        raise ValueError(f"a modifier's name must be package.module:Class, but got {name!r}")
    return getattr(importlib.import_module(module), path)


class Installed:
    """The modifiers of a layer, from which every client gets instances of its own."""

    def __init__(self, modifiers: "Sequence[ModifierLike] | Installed" = ()) -> None:
        """Load the modifiers, and create the first client's. Raises TypeError if one cannot be created."""
        given = modifiers._factories if isinstance(modifiers, Installed) else [*map(_Factory, modifiers)]
        self._factories: list[_Factory] = given

    def __bool__(self) -> bool:
        return bool(self._factories)

    def for_client(self, layer: str, ids: Source) -> "ClientModifiers":
        """The modifiers for another client; `ids` are for the tensors they create."""
        with using(ids):
            return ClientModifiers([factory.make() for factory in self._factories], layer, ids)


class _Factory:
    """Creates one modifier for each client."""

    def __init__(self, given: ModifierLike) -> None:
        loaded: Any = load(given) if isinstance(given, str) else given
        self._first: Any
        if isinstance(loaded, type) or (callable(loaded) and not hasattr(loaded, "process")):
            self._make: Callable[[], Any] = loaded
            self.name = getattr(loaded, "__name__", type(loaded).__name__)
            try:
                self._first = loaded()
            except Exception as error:
                raise TypeError(
                    f"the stream modifier {self.name} could not be created: {type(error).__name__}: {error}. "
                    "It is called without arguments, once for each client"
                ) from error
        else:
            self._first = loaded
            self.name = type(loaded).__name__
            self._make = _copies_of(loaded)
        for method in ("process", "get_stats"):
            if not callable(getattr(self._first, method, None)):
                raise TypeError(
                    f"{self._first!r} is not a stream modifier: it has no method {method}. A modifier is "
                    "given as a class, a function that makes one, an instance, or as 'package.module:Class'"
                )

    def make(self) -> StreamModifier:
        """A modifier for another client. If it cannot be created, the client's tensors fail."""
        first, self._first = self._first, None
        if first is not None:
            return first
        try:
            return self._make()
        except Exception as error:  # noqa: BLE001 - users' code; the client gets the error when it reads a tensor
            return _FailedModifier(self.name, error)


def _copies_of(instance: Any) -> Callable[[], Any]:
    """A function that gives copies of an instance as it is now."""
    try:
        prototype = copy.deepcopy(instance)
    except Exception as error:  # noqa: BLE001 - users' code; it matters only if there is a second client
        why = (
            f"an instance serves one client, and others get copies of it, but it cannot be copied "
            f"({type(error).__name__}: {error}). Pass its class instead"
        )

        def fail() -> Any:
            raise TypeError(why)

        return fail
    return lambda: copy.deepcopy(prototype)


class _FailedModifier:
    """A placeholder for a modifier that could not be created for a client: every instruction fails."""

    def __init__(self, name: str, error: Exception) -> None:
        self.name = name
        self._why = f"it could not be created for this client: {type(error).__name__}: {error}"

    def process(self, cmd: Any) -> Iterator[Any]:
        raise RuntimeError(self._why)

    def get_stats(self) -> dict[str, Any]:
        raise RuntimeError(self._why)


class ClientModifiers:
    """One client's modifiers at one layer, in order."""

    def __init__(self, modifiers: Sequence[StreamModifier], layer: str, ids: Source) -> None:
        self._ids = ids
        # The modifiers of the dispatcher run before its checks, so they may issue the instructions of
        # clients.
        self._origin = DISPATCHER if layer == "worker" else CLIENT
        self._modifiers: dict[str, StreamModifier] = {}
        """By the name of their class; of several of one class, the others are numbered."""
        seen: Counter[str] = Counter()
        for modifier in modifiers:
            name = modifier.name if isinstance(modifier, _FailedModifier) else type(modifier).__name__
            seen[name] += 1
            self._modifiers[name if seen[name] == 1 else f"{name} {seen[name]}"] = modifier

    def __bool__(self) -> bool:
        return bool(self._modifiers)

    def process(self, instructions: Sequence[LocalInstruction]) -> list[LocalInstruction]:
        """The instructions that all modifiers, one after the other, replace these by."""
        return self.process_with_origins(instructions)[1]

    def process_with_origins(
        self, instructions: Sequence[LocalInstruction]
    ) -> tuple[list[int], list[LocalInstruction]]:
        """As `process`, and for each result the index of the instruction that it replaces."""
        result = list(enumerate(instructions))
        with using(self._ids):
            for name, modifier in self._modifiers.items():
                result = [(n, made) for n, one in result for made in self._apply(name, modifier, one)]
        return [n for n, _ in result], [made for _, made in result]

    def _apply(self, name: str, modifier: StreamModifier, cmd: LocalInstruction) -> list[LocalInstruction]:
        """The instructions that a modifier replaces one by; if it raises, a Lost for that instruction's
        tensors."""
        try:
            made = list(modifier.process(cmd))
            for one in made:
                if one is not cmd:
                    check_issued(one, self._origin)
                    if isinstance(one, Op):
                        encode(one)  # raises if an attribute has a type that cannot be sent
        except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where the tensor is read
            text = f"the stream modifier {name} failed on {cmd}: {type(error).__name__}: {error}"
            why = text.encode(errors="replace").decode()  # so that it can be sent
            logs.verbose(why)
            results = made_by(cmd)
            # Other workers wait for an exchange, so it stays unchanged, and so does an instruction that makes
            # no tensor.
            return [cmd] if not results or isinstance(cmd, Exchange) else [Lost(list(results), why)]
        return made

    def get_stats(self) -> dict[str, dict[str, Any]]:
        """Each modifier's statistics, by the name of its class."""
        return {name: _stats_of(modifier) for name, modifier in self._modifiers.items()}


def _stats_of(modifier: StreamModifier) -> dict[str, Any]:
    """A modifier's statistics as plain values; if it has none, `error` is the reason."""
    try:
        found: Any = modifier.get_stats()
        if not isinstance(found, dict):
            raise TypeError(f"expected a dictionary, but got {found!r:.200}")
        encoded = _encode(found)
        if len(encoded) > MAX_STATS:
            raise ValueError(f"they take {len(encoded)} bytes, and the limit is {MAX_STATS}")
        return msgspec.msgpack.decode(encoded)
    except Exception as error:  # noqa: BLE001 - users' code must not end a server or worker
        return {"error": f"get_stats() returned no usable statistics: {type(error).__name__}: {error}"}


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(
        f"{value!r:.200} is a {type(value).__name__}; statistics are numbers, strings, lists, dicts"
    )


_encode = msgspec.msgpack.Encoder(enc_hook=_plain).encode
