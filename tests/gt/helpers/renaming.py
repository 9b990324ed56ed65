"""A modifier that tests use at every layer."""

from collections.abc import Iterator
from typing import Any

from gt.stream.instructions import Op


class Rename:
    """Makes one op another."""

    def __init__(self, before: str, after: str) -> None:
        self.before, self.after, self.count = before, after, 0

    def process(self, cmd: Any) -> Iterator[Any]:
        if isinstance(cmd, Op) and cmd.op == self.before:
            self.count += 1
            cmd = Op(cmd.result, self.after, cmd.inputs, cmd.attrs, cmd.site)
        yield cmd

    def get_stats(self) -> dict[str, Any]:
        return {"count": self.count}
