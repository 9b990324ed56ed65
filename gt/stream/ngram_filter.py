"""The n-gram filter: decides from op names alone whether a stream can contain a repetition.

A repeated sequence has the same op names in the same order. As long as no n-gram of names occurs twice, ops
are not compared at all, so detection costs little in a program that never repeats.
"""

from collections.abc import Sequence


class NGramFilter:
    """Op names as the characters of a string, and the set of the n-grams of that string."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._characters: dict[str | None, str] = {}
        self._end = ""
        """The last n - 1 characters: the next n-grams begin in them."""
        self._ngrams: set[str] = set()
        self.seen = 0
        """How many names were added."""

    def add(self, names: Sequence[str | None], new: bool = False) -> bool:
        """Add names (None for a break). With `new`, False if one of the n-grams has occurred before."""
        characters, length = self._characters, self._length
        try:
            text = self._end + "".join([characters[name] for name in names])
        except KeyError:
            for name in names:
                characters.setdefault(name, chr(len(characters)))
            text = self._end + "".join([characters[name] for name in names])
        ngrams = [text[n : n + length] for n in range(len(text) - length + 1)]
        before = len(self._ngrams)
        self._ngrams.update(ngrams)
        if new and len(self._ngrams) < before + len(ngrams):
            return False
        self._end = text[1 - length :]
        self.seen += len(names)
        return True
