"""The registry of languages: a mapping whose entries are imported when they are first looked up."""

import sys
from collections.abc import Iterator, MutableMapping

from triton_viz.core.lazy import load
from triton_viz.dsls.base import DSL


class Backends(MutableMapping[str, DSL]):
    """Languages by name, given as a `DSL`, or as "module:NAME" of one that is imported on first use."""

    def __init__(self, **entries: DSL | str):
        self._entries = entries

    def __getitem__(self, name: str) -> DSL:
        entry = self._entries[name]
        if isinstance(entry, str):
            entry = self._entries[name] = load(entry)
        return entry

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __setitem__(self, name: str, dsl: DSL) -> None:
        self._entries[name] = dsl

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def loaded(self) -> list[DSL]:
        """The languages whose modules are imported, whether or not they were looked up here."""
        found = []
        for entry in self._entries.values():
            if isinstance(entry, str):
                module, _, name = entry.partition(":")
                found.append(getattr(sys.modules.get(module), name, None))
            else:
                found.append(entry)
        return [dsl for dsl in found if dsl is not None]
