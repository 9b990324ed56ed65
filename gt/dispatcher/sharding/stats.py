"""Statistics of a sharding modifier."""

import dataclasses
from collections import Counter
from typing import Any


@dataclasses.dataclass
class ShardingStats:
    """Counts of placed ops and tensors."""

    ops: int = 0
    sharded_ops: int = 0
    """Ops that several workers execute, one part each."""
    sharded_tensors: int = 0
    sharded_bytes: int = 0
    bytes_moved: int = 0
    """Bytes sent between workers."""
    commands: Counter[str] = dataclasses.field(default_factory=Counter)
    """The instructions that were added, by kind."""
    gathered: Counter[str] = dataclasses.field(default_factory=Counter)
    """How often each op had to gather inputs, by name."""

    def copy(self) -> "ShardingStats":
        """The counts as they are now."""
        return dataclasses.replace(self, commands=self.commands.copy(), gathered=self.gathered.copy())

    def since(self, before: "ShardingStats") -> "ShardingStats":
        """The difference to earlier counts."""
        return ShardingStats(
            self.ops - before.ops,
            self.sharded_ops - before.sharded_ops,
            self.sharded_tensors - before.sharded_tensors,
            self.sharded_bytes - before.sharded_bytes,
            self.bytes_moved - before.bytes_moved,
            self.commands - before.commands,
            self.gathered - before.gathered,
        )

    def add(self, more: "ShardingStats") -> None:
        """Add other counts to these."""
        self.ops += more.ops
        self.sharded_ops += more.sharded_ops
        self.sharded_tensors += more.sharded_tensors
        self.sharded_bytes += more.sharded_bytes
        self.bytes_moved += more.bytes_moved
        if more.commands:
            self.commands.update(more.commands)
        if more.gathered:
            self.gathered.update(more.gathered)

    def as_dict(self) -> dict[str, Any]:
        """The counts by name."""
        return {
            "ops": self.ops,
            "sharded_ops": self.sharded_ops,
            "sharded_tensors": self.sharded_tensors,
            "sharded_bytes": self.sharded_bytes,
            "commands": dict(self.commands),
            "bytes_moved": self.bytes_moved,
            "gathered": dict(self.gathered),
        }
