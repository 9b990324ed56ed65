"""Setting attributes for a while, in scopes that may close in any order."""

import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Any

_INHERITED: Any = object()
_lock = threading.RLock()
_stacks: dict[tuple[int, str], list[tuple[Any, Any]]] = {}
"""For each attribute that is set, by its owner's id and its name: who set it to what, oldest first.

The first entry is what was there before. A scope keeps its owners alive, so that ids stay theirs.
"""


class set_attributes:
    """Sets attributes while inside. One that came from the class is removed again, not copied down.

    Of several scopes that set one attribute, the one that was entered last wins, whichever are left first.
    When all are left, what was there before is there again.
    """

    def __init__(self, patches: Iterable[tuple[Any, str, Any]]):
        self._patches = list(patches)

    def __enter__(self) -> None:
        try:
            with _lock:
                for owner, name, value in self._patches:
                    before = (None, vars(owner).get(name, _INHERITED))
                    _stacks.setdefault((id(owner), name), [before]).append((self, value))
                    setattr(owner, name, value)
        except BaseException:
            self._restore()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._restore()

    def _restore(self) -> None:
        with _lock:
            for owner, name, _ in reversed(self._patches):
                stack = _stacks.get((id(owner), name), [])
                position = next((n for n in reversed(range(len(stack))) if stack[n][0] is self), None)
                if position is None:  # an error came before it was set
                    continue
                del stack[position]
                if position == len(stack):
                    _set(owner, name, stack[-1][1])
                if len(stack) == 1:
                    del _stacks[id(owner), name]


def _set(owner: Any, name: str, value: Any) -> None:
    if value is not _INHERITED:
        setattr(owner, name, value)
    elif name in vars(owner):
        delattr(owner, name)
