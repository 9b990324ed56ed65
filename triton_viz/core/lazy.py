"""Names that are imported when they are first used."""

import importlib
from collections.abc import Callable
from typing import Any


def load(path: str) -> Any:
    """Import the object that "module:NAME" names."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def lazy_exports(module: str, *paths: str) -> Callable[[str], Any]:
    """A module's `__getattr__`, which imports each "module:NAME" when its name is first asked for."""
    exports = {path.partition(":")[2]: path for path in paths}

    def find(name: str) -> Any:
        if name not in exports:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return load(exports[name])

    return find
