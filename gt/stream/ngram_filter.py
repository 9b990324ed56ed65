"""The n-gram filter: decides from op names alone whether a stream can contain a repetition.

The op names of a repeated sequence occur in the same order as before. While no n-gram of names occurs twice,
nothing else is compared, so detection costs little for a program that never repeats.
"""

from collections.abc import Sequence


class NGramFilter:
    """Op names as characters of a text, and the set of its n-grams."""

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
