"""The log file of the tape. Several processes may append to one file."""

import os


class LogFile:
    """Appends text to a file, each piece in one write, so that lines of several processes never mix."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        self.appends = os.fstat(self._descriptor).st_size > 0
        """Whether the file was not empty when it was opened."""

    def write(self, text: str) -> None:
        """Append text. It is in the file when this returns: a log is read after a crash."""
        data = memoryview(text.encode(errors="replace"))
        while data:
            data = data[os.write(self._descriptor, data) :]

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)
