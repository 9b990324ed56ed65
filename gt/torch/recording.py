"""A graph's instructions as repeats of known sequences, and the tensors that result."""

import itertools
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from gt.client.client import Client
from gt.ops.run_time import is_random, with_seed
from gt.stream.instructions import Op
from gt.stream.repeats import Repeat, Template
from gt.stream.sequences import MAX_SEQUENCE_OPS, HotSequence, Step
from gt.tensors.random import next_seed
from gt.torch.allocation import create_storage, tensor_in
from gt.torch.buffers import Buffer, Handle, Layout, buffer_of, create, current_client, geometry_of
from gt.torch.geometry import Geometry
from gt.torch.recorder import Recorder
from gt.torch.sites import site

Ref = int
"""A value: the number of the step that makes it or, for the inputs, -1, -2, ..."""


class Piece(NamedTuple):
    """A part of a recording that is one sequence."""

    sequence: HotSequence
    first: int
    """The number of its first step in the recording."""
    inputs: list[Ref]
    kept: list[int]
    """The steps, by their numbers in the sequence, whose results exist after it."""
    freed: list[int]
    """The steps of earlier pieces, by their numbers in the recording, that no later piece needs."""


class Storage(NamedTuple):
    """The value of a storage after the graph."""

    base: Geometry
    dtype: torch.dtype
    value: Ref
    nbytes: int


class Output(NamedTuple):
    """A result of the graph that is a new tensor."""

    storage: int
    layout: Layout | None
    """The layout of a new storage; None if several results share one."""
    geometry: Geometry
    dtype: torch.dtype


class Recording:
    """The instructions of a graph for inputs of certain layouts."""

    def __init__(self, recorder: Recorder, numbers: dict[int, Any]) -> None:
        self._recorder = recorder
        self._numbers = numbers
        """By the result of an op that converts a number of the host: the node that computes the number."""
        self._outputs: list[Output] = []
        self._storages: list[Storage] = []
        self._storage_indices: dict[int, int] = {}
        """By `id()` of a buffer: which of the storages it is."""
        self._written: list[tuple[int, Storage]] = []
        self._templates: weakref.WeakKeyDictionary[Client, list[Template]] = weakref.WeakKeyDictionary()
        self._fresh = True

    # --- recording ---

    def add_output(self, tensor: torch.Tensor) -> int:
        """Add a tensor that the graph returns; its index among all of them."""
        buffer = buffer_of(tensor)
        index = self._storage_indices.get(id(buffer))
        if index is None:
            index = self._storage_indices[id(buffer)] = len(self._storages)
            self._storages.append(_storage(tensor, buffer))
        output = Output(index, buffer.layout, geometry_of(tensor), tensor.dtype)
        if tensor.is_conj() or tensor.is_neg():
            raise NotImplementedError("conjugate views")
        self._outputs.append(output)
        return len(self._outputs) - 1

    def add_written(self, index: int, tensor: torch.Tensor) -> None:
        """Record that the graph changes the input of this number in place."""
        self._written.append((index, _storage(tensor, buffer_of(tensor))))

    def end(self) -> None:
        """Make sequences of the recorded instructions."""
        recorder = self._recorder
        wanted = {one.value for one in self._storages} | {one.value for _, one in self._written}
        ops, where = _needed(recorder.ops, recorder.where, wanted)
        refs = {number: -1 - n for n, number in enumerate(recorder.inputs)}
        refs.update((op.result, n) for n, op in enumerate(ops))
        self._where = where
        self._count = len(ops)
        self._storages = [one._replace(value=refs[one.value]) for one in self._storages]
        self._written = [(n, one._replace(value=refs[one.value])) for n, one in self._written]
        self._last = {one.value for one in self._storages} | {one.value for _, one in self._written}
        self._last = {ref for ref in self._last if ref >= 0}
        self._pieces = _cut(ops, refs, self._last)
        self._seeds = [(n, op.attrs or {}) for n, op in enumerate(ops) if is_random(op.attrs)]
        self._values = [
            (n, op.attrs or {}, self._numbers[op.result])
            for n, op in enumerate(ops)
            if op.result in self._numbers
        ]
        shared = [one.storage for one in self._outputs]
        self._outputs = [
            one if shared.count(one.storage) == 1 else one._replace(layout=None) for one in self._outputs
        ]
        del self._recorder, self._storage_indices, self._numbers

    # --- replay ---

    def run(self, values: Sequence[Handle], buffers: Sequence[Buffer], host: dict[Any, Any]) -> list[Any]:
        """Issue the graph for these inputs: the values of `buffers`, and then others. Returns new tensors."""
        client = values[0].client if values else current_client()
        templates = self._templates.get(client)
        if templates is None:
            templates = self._templates[client] = self._new_templates(client)
        following = client.next_id
        ids = [following() for _ in range(self._count)]
        changed: dict[int, dict[str, Any]] = {}
        if not self._fresh:  # the first call uses the seeds that were drawn during the recording
            for n, attrs in self._seeds:
                changed[n] = with_seed(attrs, next_seed())
        self._fresh = False
        for n, attrs, node in self._values:
            changed[n] = {**attrs, "value": float(host[node])}
        for piece, template in zip(self._pieces, templates, strict=True):
            first, count = piece.first, len(piece.sequence)
            inputs = [values[-1 - ref].id if ref < 0 else ids[ref] for ref in piece.inputs]
            here = changed
            if first or count < self._count:
                here = {n - first: one for n, one in changed.items() if first <= n < first + count}
            freed = [ids[n] for n in piece.freed]
            client.repeat(Repeat(template, inputs, ids[first : first + count], piece.kept, freed, here))
        if ids and ids[-1] >= client.next_flush:
            client.next_flush = ids[-1] + client.flush_ready()
        made = {n: Handle(client, ids[n]) for n in self._last}
        for index, storage in self._written:
            buffer, ref = buffers[index], storage.value
            buffer.base = storage.base
            buffer.write(made[ref] if ref >= 0 else values[-1 - ref])
        return self._tensors(made, values)

    def _tensors(self, made: dict[int, Handle], values: Sequence[Handle]) -> list[Any]:
        shared: dict[int, Any] = {}
        tensors: list[Any] = []
        for index, layout, geometry, dtype in self._outputs:
            base, base_dtype, ref, nbytes = self._storages[index]
            value = made[ref] if ref >= 0 else values[-1 - ref]
            if layout is not None:
                tensors.append(create(layout, value))
                continue
            storage: Any = shared.get(index)
            if storage is None:
                storage = shared[index] = create_storage(nbytes)
                storage.tapestry = Buffer(base, base_dtype, value)
            tensors.append(tensor_in(storage, *geometry, dtype))
        return tensors

    def _new_templates(self, client: Client) -> list[Template]:
        """The sequences, with the client's numbers for lines of the user's code."""
        caller = site(client)
        sites = tuple([client.site_number(where) if where else caller for where in self._where])
        return [
            Template(piece.sequence, sites[piece.first : piece.first + len(piece.sequence)])
            for piece in self._pieces
        ]


def _storage(tensor: torch.Tensor, buffer: Buffer) -> Storage:
    return Storage(buffer.base, buffer.dtype, buffer.read().id, tensor.untyped_storage().nbytes())


def _needed(ops: Sequence[Op], where: Sequence[str], wanted: set[int]) -> tuple[list[Op], list[str]]:
    """The ops that the wanted values depend on, and all random ones: these count as draws in eager mode,
    too."""
    wanted = set(wanted)
    kept: list[tuple[Op, str]] = []
    for op, line in zip(reversed(ops), reversed(where), strict=True):
        if op.result in wanted or is_random(op.attrs):
            wanted.update(op.inputs)
            kept.append((op, line))
    kept.reverse()
    return [op for op, _ in kept], [line for _, line in kept]


def _cut(ops: Sequence[Op], refs: dict[int, Ref], last: set[int]) -> list[Piece]:
    """The ops as sequences that are not too long; `last` are the steps that are needed after all of them."""
    starts = [0]
    while starts[-1] < len(ops):
        end = min(starts[-1] + MAX_SEQUENCE_OPS, len(ops))
        while (
            end < len(ops) and ops[end].op == "item"
        ):  # an op with several results is in one sequence with the ops that use them
            end -= 1
        starts.append(end)
    ends_at = {ref: n for n, op in enumerate(ops) for ref in [refs[one] for one in op.inputs]}
    pieces: list[Piece] = []
    for first, end in itertools.pairwise(starts):
        inputs: dict[Ref, int] = {}
        steps: list[Step] = []
        for op in ops[first:end]:
            given: list[int] = []
            for one in op.inputs:
                ref = refs[one]
                given.append(ref - first if ref >= first else inputs.setdefault(ref, -1 - len(inputs)))
            steps.append(Step(op.op, tuple(given), op.attrs))
        sequence = HotSequence(steps)
        sequence.explicit = True
        kept = [n - first for n in range(first, end) if n in last or ends_at.get(n, 0) >= end]
        freed = [ref for ref in inputs if ref >= 0 and ref not in last and ends_at[ref] < end]
        pieces.append(Piece(sequence, first, list(inputs), kept, freed))
    return pieces
