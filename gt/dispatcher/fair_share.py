"""Fair shares: which client's instructions a worker gets next.

Each client has a queue. A worker's time is shared evenly among the clients that have something queued: the
next chunk is that of the client that has used the worker least. The time that instructions take is measured,
and a chunk holds about `CHUNK_SECONDS` of work, so that a client with a million instructions, or with very
large ones, does not delay a client with ten.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gt.stream.instructions import LocalInstruction
from gt.stream.repeats import weight
from gt.stream.tape_entries import UploadEntry

if TYPE_CHECKING:
    from gt.dispatcher.session import Session

CHUNK_SECONDS = 0.02
"""The approximate duration of a chunk, in seconds."""

MAX_CHUNK_INSTRUCTIONS = 512
"""How many instructions a chunk has at most."""

MAX_CHUNKS_IN_FLIGHT = 16
"""The largest number of chunks that a worker has at a time; of long ones, it has two."""


class Batch:
    """Instructions that a client sent together, and the index of the first that is still to be sent."""

    __slots__ = ("frames", "instructions", "position", "sequence")

    def __init__(self, sequence: int, instructions: Sequence[Any], frames: Sequence[Any]) -> None:
        self.sequence = sequence
        self.instructions = instructions
        """If the client uses several workers, these are Placed."""
        self.frames = frames
        self.position = 0


class Group:
    """The chunks that one piece of a stream was divided into: one for each worker involved."""

    __slots__ = ("ends", "size", "waiting")

    def __init__(self, ends: int | None, size: int) -> None:
        self.ends = ends
        """The number of the batch that ends with this group; None if no batch does."""
        self.size = self.waiting = size


class Chunk:
    """A piece of a client's stream for one worker."""

    __slots__ = ("estimate", "frames", "group", "instructions", "session", "share", "shown", "weight")

    def __init__(
        self,
        session: "Session",
        share: "FairShare",
        instructions: Sequence[LocalInstruction],
        frames: Sequence[Any],
        group: Group,
    ) -> None:
        self.session = session
        self.share = share
        self.instructions = instructions
        self.frames = frames
        self.group = group
        self.weight = max(1, weight(instructions))
        """The number of instructions, with repeats expanded."""
        self.estimate = session.cost * self.weight
        """The expected duration, in seconds."""
        self.shown: Sequence[LocalInstruction | UploadEntry] = ()
        """The instructions as the tape shows them."""


class FairShare:
    """One worker's time, and the clients that share it."""

    def __init__(self, worker: str) -> None:
        self.worker = worker
        self.sessions: list[Session] = []
        self._out = 0
        self._out_seconds = 0.0
        self.level = 0.0
        """The least time, in seconds, that a client with queued work has used. A client that joins, or
        has been idle, starts at this level. It never falls."""

    @property
    def has_room(self) -> bool:
        """Whether the worker should get another chunk."""
        return self._out < 2 or (self._out < MAX_CHUNKS_IN_FLIGHT and self._out_seconds < CHUNK_SECONDS)

    def sent(self, chunk: Chunk) -> None:
        """Account for a chunk that was sent to the worker."""
        chunk.session.used += chunk.estimate / chunk.group.size
        self._out += 1
        self._out_seconds += chunk.estimate

    def finished(self, chunk: Chunk, seconds: float) -> None:
        """Account for a chunk that the worker has executed in this many seconds."""
        self._out -= 1
        self._out_seconds -= chunk.estimate
        session = chunk.session
        session.used += (seconds - chunk.estimate) / chunk.group.size
        self.level = max(
            self.level, min(one.used for one in [session, *self.sessions] if one.queue or one is session)
        )
        measured = seconds / chunk.weight
        # Raised at once, lowered slowly: too high an estimate costs little, too low a one makes others wait.
        session.cost = max(1e-7, measured, 0.7 * session.cost + 0.3 * measured)
