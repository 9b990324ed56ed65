"""Reading a tensor that lies in parts: every part goes straight to its place in one array."""

import numpy as np

from gt.transport.protocol import Fetched


class Assembly:
    """Answers that are still incomplete, by request."""

    def __init__(self) -> None:
        self._arrays: dict[int, np.ndarray] = {}
        self._missing: dict[int, int] = {}
        self._errors: dict[int, str] = {}

    def add(self, reply: Fetched) -> Fetched | None:
        """Take in an answer; the result is the whole answer, once it is complete."""
        request, array, error, part = reply
        if part is None:
            return reply
        missing = self._missing.get(request, part.count) - 1
        self._missing[request] = missing
        if error is not None or array is None:
            self._errors.setdefault(request, error or "there is no data")
        else:
            whole = self._arrays.get(request)
            if whole is None:
                whole = self._arrays[request] = np.empty(part.whole, array.dtype)
            whole[part.place] = array
        if missing:
            return None
        del self._missing[request]
        result, failed = self._arrays.pop(request, None), self._errors.pop(request, None)
        return Fetched(request, result if failed is None else None, failed)
