"""Ways back through a graph that were gone before, so that the next time no rule has to be asked.

A training loop goes backward through the same graph at every step. What the rules of the op table issue for
it depends on the graph's ops, their attributes, and the shapes and dtypes of what they read, and on nothing
else. So a backward pass can be written down once (`Recorder`), as instructions whose tensors are numbers of
places, and be issued again for any graph that is the same (`Rehearsal`), at a fraction of the time.
"""

import math
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gt.transport.protocol import LocalInstruction, Op

if TYPE_CHECKING:
    from gt.client.autograd import Leaf, TapeNode
    from gt.client.base import Value
    from gt.client.client import Client
    from gt.client.tensor import Tensor
    from gt.ops import Spec

NOWHERE, NOT_REACHED = 1 << 40, 1 << 41
"""An input that wants no gradient, and one that wants one and gets none."""


class Place(NamedTuple):
    """What a node of the graph has to be."""

    op: str
    specs: "list[Spec]"
    attrs: dict[str, Any]
    numbers: tuple[tuple[str, type, bool], ...]
    """Those attributes that are numbers, of what type, and which are below 0.0 or -0.0: for Python, 1, 1.0
    and True are equal, and so are 0.0 and -0.0."""
    edges: list[int]
    """Where its inputs' gradients go: to the node of that number; below 0, to a leaf, the last being -1."""
    twice: tuple[tuple[int, int], ...]
    """Which of its values are one and the same."""


class Issued(NamedTuple):
    """An op of a backward pass. Its inputs are numbers of tensors, as in `Rehearsal`."""

    op: str
    inputs: list[int]
    attrs: dict[str, Any] | None
    seeded: bool
    """Whether its seed is that of the node it is for."""


class Ending(NamedTuple):
    """A leaf's gradient: which tensor it is, and what it is added to."""

    tensor: int
    spec: "Spec"
    node: int
    """The last one that had a part in it."""
    fresh: bool
    """Whether the leaf had no gradient before."""


class Rehearsal:
    """A backward pass, written down.

    Tensors have numbers: first the gradient it begins with, then the values of all nodes in order, then the
    gradients that leaves had before, then what is issued, in order.
    """

    def __init__(
        self, places: list[Place], parts: list[list[Issued | int]], endings: list[Ending], given: int
    ) -> None:
        self.places = places
        self.parts = parts
        """For each node, what is issued and, as numbers, what is freed."""
        self.endings = endings
        self._given = given
        """How many tensors are there before anything is issued."""

    def perform(self, root: "TapeNode", gradient: "Value", retain_graph: bool) -> bool:
        """Go back through this graph, if it is the same. If not, False, and nothing has happened."""
        nodes: list[Any] = [root, *[None] * (len(self.places) - 1)]
        leaves: list[Any] = [None] * len(self.endings)
        known = [gradient.id]
        if not self._fits(nodes, leaves, known):
            return False
        client = gradient.client
        done = 0
        sites = [node.values[-1].site for node in nodes]
        try:
            next_id, emit, put = client.next_id, client.emit, known.append
            for part, node, site in zip(self.parts, nodes, sites, strict=True):
                done += 1
                for step in part:
                    if isinstance(step, int):
                        emit(known[step])
                        continue
                    op, inputs, attrs, seeded = step
                    if seeded and attrs is not None:
                        attrs = {**attrs, "seed": node.attrs["seed"]}
                    number = next_id()
                    emit(Op(number, op, tuple([known[n] for n in inputs]), attrs, site))
                    put(number)
                if not retain_graph:
                    node.values = ()
                if known[-1] >= client.next_flush:
                    client.next_flush = known[-1] + client.pass_on()
        except BaseException:
            self._undo(client, known, done)
            raise
        self._end(client, known, leaves, sites, gradient)
        return True

    def _fits(self, nodes: list[Any], leaves: list[Any], known: list[int]) -> bool:
        """Whether a graph is the same; fills in its nodes, its leaves and the numbers of its tensors."""
        later = nodes[0].sequence + 1
        tapenode = type(nodes[0])
        for node, (op, specs, attrs, numbers, edges, twice) in zip(nodes, self.places, strict=True):
            values = node.values
            if node.op != op or node.sequence >= later or node.hooks or node.retains:
                return False
            later = node.sequence  # the newest first, as `backward` goes: so none comes twice
            if [value.spec for value in values] != specs or not _equal(node.attrs, attrs, numbers):
                return False
            for a, b in twice:
                if values[a] is not values[b]:
                    return False
            known += [value.id for value in values]
            for edge, number in zip(node.edges, edges, strict=True):
                if edge is None or number == NOWHERE:
                    if edge is not None or number != NOWHERE:
                        return False
                elif number < 0:
                    if leaves[number] is None and type(edge) is not tapenode:
                        leaves[number] = edge
                    elif leaves[number] is not edge:
                        return False
                elif number < NOWHERE:
                    if nodes[number] is None and type(edge) is tapenode:
                        nodes[number] = edge
                    elif nodes[number] is not edge:
                        return False
        for leaf, ending in zip(leaves, self.endings, strict=True):
            if leaf is None or leaf.hooks or (leaf.grad is None) is not ending.fresh:
                return False
            if leaf.grad is not None:
                if leaf.grad._value.spec != ending.spec:
                    return False
                known.append(leaf.grad._value.id)
        return len(set(map(id, leaves))) == len(leaves)

    def _end(
        self, client: "Client", known: list[int], leaves: "list[Leaf]", sites: list[int], gradient: "Value"
    ) -> None:
        """Hand the leaves their gradients. One may go to several."""
        kind = type(gradient)
        made = {0: gradient}
        for leaf, (tensor, spec, node, fresh) in zip(leaves, self.endings, strict=True):
            value = made.get(tensor)
            if value is None:
                value = made[tensor] = kind(client, known[tensor], spec, sites[node])
            if fresh or leaf.grad is None:
                leaf.grad = value.tensor()
            else:
                leaf.grad._become(value.tensor())

    def _undo(self, client: "Client", known: list[int], done: int) -> None:
        """Something was raised on the way: free what nobody will."""
        freed = {step for part in self.parts[:done] for step in part if type(step) is int}
        for number in range(self._given, len(known)):
            if number not in freed:
                client.emit(known[number])


class Recorder:
    """Writes down a backward pass while it is gone through for the first time."""

    def __init__(self, client: "Client", gradient: "Tensor") -> None:
        self._client = client
        self._gradient = gradient._value.id
        self._thread = threading.get_ident()
        self._nodes: list[TapeNode] = []
        self._snapshots: list[tuple[tuple[Any, ...], list[int]]] = []
        """Of each node: its values' specs, and their ids."""
        self._leaves: list[Leaf] = []
        self._before: list[int | None] = []
        """The gradients that the leaves had."""
        self._parts: list[list[Any]] = []
        self._results: dict[int, int] = {}
        """The tensors that were made, and for which node."""
        self._why_not = ""
        self._send = client.emit
        self._listener: Callable[[LocalInstruction], None] | None = self._hear
        client.emit = self._listener

    def at(self, node: "TapeNode") -> None:
        """The pass has come to a node."""
        if node.hooks or node.retains:
            self._why_not = "somebody looks at a gradient on the way"
        self._nodes.append(node)
        self._snapshots.append(
            (tuple([value.spec for value in node.values]), [value.id for value in node.values])
        )
        self._parts.append([])

    def at_leaves(self, leaves: "Sequence[Leaf]") -> None:
        """The pass has come to its end: these get their gradients now."""
        if any(leaf.hooks for leaf in leaves):
            self._why_not = "somebody looks at a leaf's gradient"
        self._leaves = list(leaves)
        self._before = [None if leaf.grad is None else leaf.grad._value.id for leaf in leaves]

    def _hear(self, instruction: LocalInstruction) -> None:
        # Other threads may use the same client.
        if type(instruction) is int:
            if instruction in self._results:
                self._parts[-1].append(instruction)
        elif self._thread == threading.get_ident():
            if type(instruction) is Op and self._parts:
                self._results[instruction.result] = len(self._parts) - 1
                self._parts[-1].append(instruction)
            else:
                self._why_not = f"a {type(instruction).__name__}"
        self._send(instruction)

    def stop(self) -> None:
        """Listen no more."""
        if self._client.emit is self._listener:
            self._client.emit = self._send
        self._listener = None  # or it would hold itself, and the graph's tensors

    def rehearsal(self) -> Rehearsal | None:
        """What was written down; None if it cannot be gone through again without asking the rules."""
        self.stop()
        try:
            return None if self._why_not else self._numbered()
        except KeyError:  # a tensor that is neither the node's nor of this pass
            return None

    def _numbered(self) -> Rehearsal | None:
        node_of = {id(node): n for n, node in enumerate(self._nodes)}
        leaf_of = {id(leaf): n - len(self._leaves) for n, leaf in enumerate(self._leaves)}
        places: list[Place] = []
        parts: list[list[Issued | int]] = []
        numbers = {self._gradient: 0}
        total = 1 + sum(len(ids) for _, ids in self._snapshots)
        given = {before: total + n for n, before in enumerate(b for b in self._before if b is not None)}
        total += len(given)
        if len(given) + self._before.count(None) != len(self._before):
            return None  # two leaves share one
        numbers |= {result: total + n for n, result in enumerate(self._results)}
        first = 1
        for place, (node, (specs, ids)) in enumerate(zip(self._nodes, self._snapshots, strict=True)):
            if self._gradient in ids or not self._results.keys().isdisjoint(ids):
                return None
            own = {tensor: first + n for n, tensor in reversed([*enumerate(ids)])}
            twice = tuple([(ids.index(tensor), n) for n, tensor in enumerate(ids) if ids.index(tensor) != n])
            names = numbers | own
            if place == len(self._nodes) - 1:
                if own.keys() & given.keys():
                    return None
                names |= given
            parts.append([self._step(step, names, node) for step in self._parts[place]])
            edges = [
                NOWHERE if edge is None else node_of.get(id(edge), leaf_of.get(id(edge), NOT_REACHED))
                for edge in node.edges
            ]
            attrs = {name: value for name, value in node.attrs.items() if name != "seed"}
            places.append(Place(node.op, list(specs), attrs, _numbers(attrs), edges, twice))
            first += len(ids)
        endings: list[Ending] = []
        for leaf, before in zip(self._leaves, self._before, strict=True):
            if leaf.grad is None:
                return None
            grad = leaf.grad._value
            endings.append(Ending(numbers[grad.id], grad.spec, self._results.get(grad.id, 0), before is None))
        # What is neither freed nor given to a leaf is somebody else's: it would never be freed.
        freed = {step for part in parts for step in part if type(step) is int}
        ended = {ending.tensor for ending in endings}
        if any((numbers[one] in freed) == (numbers[one] in ended) for one in self._results):
            return None
        return Rehearsal(places, parts, endings, total)

    def _step(self, step: Any, names: dict[int, int], node: "TapeNode") -> Issued | int:
        if type(step) is int:
            return names[step]
        seeded = "seed" in (step.attrs or ())
        if seeded and step.attrs["seed"] != node.attrs["seed"]:
            raise KeyError("seed")
        return Issued(step.op, [names[tensor] for tensor in step.inputs], step.attrs, seeded)


def _numbers(attrs: dict[str, Any]) -> tuple[tuple[str, type, bool], ...]:
    kinds = (bool, int, float)
    return tuple(
        [
            (name, type(value), math.copysign(1, value) < 0)
            for name, value in attrs.items()
            if type(value) in kinds
        ]
    )


def _equal(given: dict[str, Any], attrs: dict[str, Any], numbers: tuple[tuple[str, type, bool], ...]) -> bool:
    """Whether attributes are these, whatever the seed."""
    if "seed" in given:
        given = {name: value for name, value in given.items() if name != "seed"}
    if given != attrs:
        return False
    for name, kind, negative in numbers:
        value = given[name]
        if type(value) is not kind or (value == 0 and (math.copysign(1, value) < 0) is not negative):
            return False
    return True


MOST = 256
"""How many lines that call backward() are kept in mind."""
PER_LINE = 8
"""How many different graphs of one line are."""


class _Line:
    """A line of the user's code whose result backward() was called on."""

    __slots__ = ("credit", "known", "seen")

    def __init__(self) -> None:
        self.seen = 0
        self.known: list[Rehearsal] = []
        """The one that was used last comes first."""
        self.credit = 2 * PER_LINE
        """How many more may be written down: a graph that is another one every time is not worth it."""

    def learn(self, rehearsal: Rehearsal | None) -> None:
        """Something was written down, or could not be."""
        self.credit -= 1 if rehearsal is not None else PER_LINE
        if rehearsal is not None:
            self.known.insert(0, rehearsal)
            del self.known[PER_LINE:]
        if self.credit <= 0:
            self.known.clear()


class Rehearsals:
    """The backward passes that are known."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, int], _Line] = {}
        """By the last op, and the number of the line that it is from."""
        self._recording = threading.Lock()

    def _line(self, root: "TapeNode", gradient: "Tensor") -> _Line | None:
        """Where to look for a graph. None if it has to be gone through as it is."""
        client = gradient._value.client
        # A signal is told of every op, and may add something.
        if not root.values or root.values[-1].client is not client or getattr(client.emit, "signals", False):
            return None
        key = root.op, root.values[-1].site
        line = self._lines.get(key)
        if line is None:
            if len(self._lines) >= MOST:
                self._lines.clear()
            line = self._lines[key] = _Line()
        return line

    def perform(self, root: "TapeNode", gradient: "Tensor", retain_graph: bool) -> bool:
        """Go back through a graph that is known. If it is not, False, and nothing has happened."""
        line = self._line(root, gradient)
        if line is None:
            return False
        for place, rehearsal in enumerate(line.known):
            if rehearsal.perform(root, gradient._value, retain_graph):
                line.credit = min(line.credit + 1, 2 * PER_LINE)
                if place:
                    line.known.remove(rehearsal)
                    line.known.insert(0, rehearsal)
                return True
        return False

    def record(self, root: "TapeNode", gradient: "Tensor", go: "Callable[[Recorder | None], None]") -> None:
        """Go back through a graph that is not known, and write it down if that is worth it."""
        line = self._line(root, gradient)
        if line is not None:
            line.seen += 1
        if line is None or line.seen < 2 or line.credit <= 0 or not self._recording.acquire(blocking=False):
            go(None)
            return
        try:
            recorder = Recorder(gradient._value.client, gradient)
            try:
                go(recorder)
            finally:
                recorder.stop()
            # Only now, when all that `go` held is freed.
            line.learn(recorder.rehearsal())
        finally:
            self._recording.release()
