"""A first look at a stream, by the names of its ops only: whether it could be repeating anything.

What is repeated has names that came before in the same order. As long as they have not, nothing else needs
to be looked at, and a program that never repeats is hardly delayed by the search for what does.
"""

from collections.abc import Sequence


class Glance:
    """The names of ops as letters of a text, and all pieces of it of one length."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._letters: dict[str | None, str] = {}
        self._end = ""
        """The last letters, with which the next pieces begin."""
        self._pieces: set[str] = set()
        self.seen = 0
        """How many names it knows."""

    def add(self, names: Sequence[str | None], new: bool = False) -> bool:
        """Add names, None where nothing can go on; if they are to be `new`, only if no piece came before."""
        letters, length = self._letters, self._length
        try:
            text = self._end + "".join([letters[name] for name in names])
        except KeyError:
            for name in names:
                letters.setdefault(name, chr(len(letters)))
            text = self._end + "".join([letters[name] for name in names])
        pieces = [text[n : n + length] for n in range(len(text) - length + 1)]
        before = len(self._pieces)
        self._pieces.update(pieces)
        if new and len(self._pieces) < before + len(pieces):
            return False
        self._end = text[1 - length :]
        self.seen += len(names)
        return True
