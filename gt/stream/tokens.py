"""Tokens: ops without the identity of their tensors, so that two parts of a stream can be compared.

A token has an op's name, its attributes and, for each input, a *distance*: how far back in the stream that
tensor was last mentioned. Two segments of a stream have the same ops and data flow if their tokens are equal.
The functions here compare tokens, and cut a repeating segment of them into sequences.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from gt.stream.sequences import HotSequence, Step, alike, is_tiny

Distances = tuple[int, ...]
Token = tuple[str, Distances, dict[str, Any] | None]
"""An op's name, the distance of each input, and the attributes.

A distance is `POSITIONS` times the number of ops since the last mention, minus the position of the tensor in
that op: 0 for its result, n for its n-th input, counted from 1. It is 0 for a tensor that was not mentioned
before, and negative for one that is an earlier input of the same op.
"""

POSITIONS = 1 << 12
"""The number of positions of an op in a distance: one more than the largest number of inputs."""

MIN_UNROLLED_OPS = 16
"""A shorter loop body is repeated until the sequence has at least this many ops."""

TINY_LOOP_OPS = 128
"""As MIN_UNROLLED_OPS, for loop bodies of fewer than `sequences.TINY_PERIOD` ops: each repeat has a fixed
cost."""


def same_token(a: Token | None, b: Token | None) -> bool:
    """Whether two tokens are equal, except for floats and seeds. None, a break, equals None only."""
    if a is None or b is None:
        return a is b
    return a[0] == b[0] and a[1] == b[1] and alike(a[2], b[2])


def steps_of(tokens: Sequence[Token | None]) -> list[Step]:
    """The steps of a sequence; tensors last mentioned before the first token become inputs from outside."""
    steps: list[Step] = []
    mentions: list[tuple[int, ...]] = []
    """For each op: the reference to its result, then to each of its inputs."""
    outside = itertools.count(-1, -1)
    for n, token in enumerate(tokens):
        assert token is not None
        op, distances, attrs = token
        inputs: list[int] = []
        for distance in distances:
            index, position = divmod(n * POSITIONS - distance, POSITIONS)
            if distance < 0:
                inputs.append(inputs[-1 - distance])
            elif distance > 0 and index >= 0:
                inputs.append(mentions[index][position])
            else:
                inputs.append(next(outside))
        mentions.append((n, *inputs))
        steps.append(Step(op, tuple(inputs), attrs))
    return steps


def cut_cycle(cycle: Sequence[Token | None]) -> list[tuple[int, int]]:
    """The bounds of the sequences in one period of a loop. An index past the period's end is in the next
    one."""
    period = len(cycle)
    breaks = [n for n, token in enumerate(cycle) if token is None]
    if breaks:
        ends = [*breaks, breaks[0] + period]
        return [(a + 1, b) for a, b in itertools.pairwise(ends) if b > a + 1]
    # No break, such as a read, shows where the loop begins: cut where the fewest tensors cross the cut.
    changes = [0] * (2 * period + 1)
    for n, token in enumerate(cycle):
        for distance in set(token[1]) if token is not None else ():
            if distance > 0:
                ops_back = min(-(-distance // POSITIONS), period)
                changes[period + n - ops_back + 1] += 1
                changes[period + n + 1] -= 1
    crossing = list(itertools.accumulate(changes))

    def cost(n: int) -> tuple[int, int]:
        """Tensors that cross; among equal cuts, prefer the one whose next op has the furthest input."""
        token = cycle[n]
        return crossing[n] + crossing[n + period], -min(token[1] if token else (), default=0)

    start = min(range(period), key=cost)
    return [(start, start + period)]


def shortest_period(tokens: list[Token | None]) -> list[Token | None]:
    """The shortest prefix of which a segment is a repetition; the segment itself if there is none.

    A loop that reads a result in every fifth step has a period of five steps, but its sequence is one step.
    """
    names = [token and token[0] for token in tokens]
    least = TINY_LOOP_OPS if is_tiny(names) else MIN_UNROLLED_OPS
    for length in range(least, len(tokens) // 2 + 1):
        if len(tokens) % length or names[length:] != names[:-length]:
            continue
        pieces = [tokens[n : n + length] for n in range(0, len(tokens), length)]
        if len({HotSequence(steps_of(piece)).id for piece in pieces}) == 1:
            return pieces[0]
    return tokens


def ops_until_start(sequence: HotSequence, recent: Sequence[Token]) -> int:
    """How many ops, including the last of `recent`, to skip until a sequence begins again.

    The ops in `recent` are assumed to be in the middle of the sequence. Without skipping, an op inside the
    sequence that equals its first op would be taken for the beginning in every iteration.
    """
    steps = sequence.steps

    def matching(index: int) -> int:
        """How many of the recent ops match, if the last one is the step at this index."""
        for back, (op, refs, attrs) in enumerate(reversed(recent)):
            step = steps[index - back % len(steps)]
            if step.op != op or len(step.inputs) != len(refs) or not alike(step.attrs, attrs):
                return back
        return len(recent)

    agree = [matching(index) for index in range(len(steps))]
    best = max(agree)
    indices = [index for index, count in enumerate(agree) if count == best]
    # If several match equally well, each miss tries the next of them.
    return len(steps) - indices[sequence.misses % len(indices)] if best else 0


def run_hashes(names: Iterable[str | None]) -> set[int]:
    """A hash of each run of op names between two breaks (None)."""
    runs = itertools.groupby(names, key=lambda name: name is None)
    return {hash(tuple(run)) for is_break, run in runs if not is_break}


def first_ops(steps: Sequence[Step]) -> str:
    """The first eight ops of a sequence, for the log."""
    return ", ".join(step.op for step in steps[:8]) + (", ..." if len(steps) > 8 else "")
