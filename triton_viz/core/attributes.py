"""Setting attributes for a while."""

from collections.abc import Iterable
from types import TracebackType
from typing import Any

_INHERITED: Any = object()


class set_attributes:
    """Sets attributes while inside. One that came from the class is removed again, not copied down."""

    def __init__(self, patches: Iterable[tuple[Any, str, Any]]):
        self._patches = list(patches)
        self._before = [(owner, name, vars(owner).get(name, _INHERITED)) for owner, name, _ in self._patches]

    def __enter__(self) -> None:
        try:
            for owner, name, value in self._patches:
                setattr(owner, name, value)
        except BaseException:
            self._restore()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._restore()

    def _restore(self) -> None:
        for owner, name, value in reversed(self._before):
            if value is not _INHERITED:
                setattr(owner, name, value)
            elif name in vars(owner):
                delattr(owner, name)
