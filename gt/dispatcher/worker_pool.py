"""The workers that are connected to a dispatcher: their links, shares, memory, and the current epoch."""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping

from gt.dispatcher.fair_share import FairShare
from gt.dispatcher.links import MeshLink, WorkerLink
from gt.dispatcher.session import Session
from gt.dispatcher.sharding.modifier import ShardingStreamModifier
from gt.dispatcher.sharding.policy import Policy
from gt.dispatcher.tensor_handle import TensorHandle
from gt.transport.protocol import Member


class WorkerPool:
    """The connected workers. Each change of them begins a new epoch, which all workers are sent."""

    def __init__(self) -> None:
        self.links: dict[str, WorkerLink] = {}
        self.shares: dict[str, FairShare] = {}
        self.handles: dict[str, TensorHandle] = {}
        """For each worker: the handle that all tensors have which are on this worker alone."""
        self.epoch = 0
        self.next_number = itertools.count().__next__
        """The number of the next worker that joins."""
        self._loads: Counter[str] = Counter()
        """By worker: bytes of the tensors that are placed on it alone."""
        self._limits: dict[str, int] = {}
        """By worker: its memory limit in bytes, if it has one."""
        self._capacity: dict[str, int] = {}
        """By worker: its memory limit or else its share of its machine's memory, in bytes."""

    def add(self, link: WorkerLink) -> None:
        """Add a worker."""
        self.links[link.name] = link
        self.shares[link.name] = FairShare(link.name)
        self.handles[link.name] = TensorHandle(link.name)
        if isinstance(link, MeshLink) and link.memory_limit:
            self._limits[link.name] = link.memory_limit

    def remove(self, name: str) -> FairShare:
        """Remove a worker; returns its share. Raises KeyError if there is no such worker."""
        share = self.shares.pop(name)
        del self.links[name], self.handles[name]
        self._limits.pop(name, None)
        self._loads.pop(name, None)
        return share

    def begin_epoch(self, sessions: Iterable[Session]) -> None:
        """Send every worker the current list of workers. Exchanges with one that has left fail."""
        self.epoch += 1
        links = [link for link in self.links.values() if isinstance(link, MeshLink)]
        members = {link.name: link.member for link in links if link.member is not None}
        self._capacity.clear()
        self._capacity.update(shares_of_memory(members) | self._limits)
        for link in links:
            link.update_members(self.epoch, members)
        for session in sessions:
            if session.sharding is not None:
                session.sharding.epoch = self.epoch

    @property
    def can_share_tensors(self) -> bool:
        """Whether there are several workers, and all can exchange tensors."""
        return len(self.links) > 1 and all(isinstance(link, MeshLink) for link in self.links.values())

    @property
    def least_used(self) -> FairShare | None:
        """The share of the worker with the fewest clients; None if there is no worker."""
        return min(self.shares.values(), key=lambda share: len(share.sessions), default=None)

    @property
    def lowest_level(self) -> float:
        """The lowest level of all workers' shares."""
        return min(share.level for share in self.shares.values())

    def sharding_for(
        self, session: Session, policy: Policy, sessions: Iterable[Session]
    ) -> ShardingStreamModifier:
        """A modifier that places a client's tensors on all workers.

        The client's small tensors stay on the worker it uses now or, if it uses none, go to the worker that
        is home to the fewest clients.
        """
        worker = session.share.worker if session.share and session.share.worker in self.links else ""
        homes = Counter(one.sharding.home for one in sessions if one.sharding is not None)
        sharding = ShardingStreamModifier(
            enable_sharding=True,
            policy=policy,
            workers=tuple(self.links),
            memory=self._limits,
            capacity=self._capacity,
            loads=self._loads,
            home=worker or min(self.links, key=lambda name: homes[name], default=""),
        )
        sharding.epoch = self.epoch
        return sharding


def shares_of_memory(members: Mapping[str, Member]) -> dict[str, int]:
    """How many bytes each worker has if the workers of a machine share its memory evenly.

    Workers that did not report their machine's memory are left out.
    """
    workers_on = Counter(member.host for member in members.values())
    return {
        name: member.memory // (workers_on[member.host] if member.host else 1)
        for name, member in members.items()
        if member.memory
    }
