"""Temporarily set attributes, in scopes that may close in any order."""

import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Any

_INHERITED: Any = object()
_lock = threading.RLock()
_stacks: dict[tuple[int, str], list[tuple[Any, Any]]] = {}
"""By owner id and attribute name: the scopes that set the attribute and their values, oldest first.

The first entry is the original value. A scope keeps its owners alive, so that ids are not reused.
"""


class set_attributes:
    """Sets attributes while inside. An inherited one is removed again at the end, not copied to its owner.

    Of several scopes that set one attribute, the one that was entered last wins, whichever are left first.
    When all are left, the original value is restored. One object may be entered again. A scope that is
    `of_launch` ends with its launch, also in a process that is forked meanwhile.
    """

    def __init__(self, patches: Iterable[tuple[Any, str, Any]], of_launch: bool = False):
        self.of_launch = of_launch
        self._patches = [((id(owner), name), owner, name, value) for owner, name, value in patches]

    def __enter__(self) -> None:
        # Every launch sets and restores some two hundred attributes, mostly as their only scope.
        try:
            with _lock:
                for key, owner, name, value in self._patches:
                    stack = _stacks.get(key)
                    if stack is None:
                        _stacks[key] = [(None, vars(owner).get(name, _INHERITED)), (self, value)]
                    else:
                        stack.append((self, value))
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
            for key, owner, name, _ in reversed(self._patches):
                stack = _stacks.get(key)
                if stack is None:  # not set: an error was raised before
                    continue
                if stack[-1][0] is self:
                    value = stack[-2][1]
                    if value is not _INHERITED:
                        setattr(owner, name, value)
                    elif name in vars(owner):
                        delattr(owner, name)
                    stack.pop()
                else:  # another scope was entered later: its value stays
                    _remove(stack, self)
                if len(stack) == 1:
                    del _stacks[key]

    def forget(self) -> None:
        """Leave the scope, however often it was entered."""
        for _ in range(max((len(_stacks.get(key, ())) for key, *_ in self._patches), default=0)):
            self._restore()


def forget_launches() -> None:
    """Leave the scopes of all launches: in a forked process, whose other threads are not there."""
    global _lock
    _lock = threading.RLock()  # one of them may have held it
    scopes = {id(scope): scope for stack in _stacks.values() for scope, _ in stack[1:] if scope.of_launch}
    for scope in scopes.values():
        scope.forget()


def _remove(stack: list[tuple[Any, Any]], scope: Any) -> None:
    for position in reversed(range(len(stack))):
        if stack[position][0] is scope:
            del stack[position]
            return
