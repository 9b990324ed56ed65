"""A graph of aten ops, as AOTAutograd makes them, that runs as repeats of known sequences.

A call reads the values of its inputs, adds one repeat to the stream, and returns tensors for its results. It
is recorded at the first call with inputs of these layouts (`recording.py`). Nodes that compute on
the CPU and depend on no tensor of the device run in the program, before the repeat: the numbers that
optimizers count, and floats that change.
"""

import logging
from typing import Any

import torch
from torch.fx.node import map_arg
from torch.utils._pytree import tree_leaves

from gt.torch.allocation import create_storage, tensor_in
from gt.torch.buffers import (
    Buffer,
    Handle,
    Layout,
    contiguous,
    create,
    emit_aten,
    geometry_of,
    is_on_device,
    name_of,
    recording_to,
)
from gt.torch.recorder import NotRecordable, Recorder, line_of
from gt.torch.recording import Recording
from gt.torch.transfers import upload

_log = logging.getLogger("gt.torch")

MAX_RECORDINGS = 64
"""The largest number of recordings of a graph; with further layouts or numbers it runs op by op."""


class DeviceGraph:
    """A callable for a graph, which takes a list of its inputs."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        self._module = module
        self._recordings: dict[tuple[Any, ...], _GraphRecording | None] = {}
        nodes = list(module.graph.nodes)
        placeholders = [node for node in nodes if node.op == "placeholder"]
        self._place = {node: n for n, node in enumerate(placeholders)}
        self._constants: dict[torch.fx.Node, Any] = {
            node: _attribute(module, node.target) for node in nodes if node.op == "get_attr"
        }
        on_device = {node for node in placeholders if is_on_device(node.meta.get("val"))}
        on_device |= {node for node, one in self._constants.items() if is_on_device(one)}
        for node in nodes:
            made = tree_leaves(node.meta.get("val"))
            if node.op not in ("placeholder", "get_attr", "output") and (
                any(map(is_on_device, made)) or not on_device.isdisjoint(node.all_input_nodes)
            ):
                on_device.add(node)
        self._device_places = [self._place[node] for node in placeholders if node in on_device]
        self._device_constants = [one for one in self._constants.values() if is_on_device(one)]
        self._device_sources = [node for node in placeholders if node in on_device]
        self._device_sources += [node for node, one in self._constants.items() if is_on_device(one)]
        self._device_nodes = [node for node in nodes if node in on_device and node.op.startswith("call")]
        self._host_nodes = [
            node for node in nodes if node not in on_device and node.op in ("call_function", "call_method")
        ]
        self._host_places = [(node, n) for node, n in self._place.items() if node not in on_device]
        used = {one for node in self._device_nodes for one in node.all_input_nodes} - on_device
        self._used = [node for node in nodes if node in used]
        """Nodes of the host whose values are inputs of the device's nodes."""
        self._host_part: Any = None
        """A function of the host's inputs and of constants that computes the host's nodes."""
        (self._end,) = [node for node in nodes if node.op == "output"]

    def __call__(self, args: list[Any]) -> Any:
        """Run the graph."""
        host = self._run_host(args)
        inputs = [args[n] for n in self._device_places]
        inputs += self._device_constants
        buffers: list[Buffer] = []
        values: list[Handle] = []
        key: list[Any] = []
        for one in inputs:
            buffer = one.untyped_storage().tapestry
            if buffer.layout is not None:
                key.append(buffer.layout)
            elif one.is_conj() or one.is_neg():
                return self._module(*args)
            else:
                key.append((geometry_of(one), one.dtype, buffer.base, buffer.dtype))
            buffers.append(buffer)
            value = buffer.value
            values.append(value if type(value) is Handle else buffer.read())
        for node in self._used:
            key.append(_key(host[node]))
        recording = self._recordings.get(tuple(key), _UNKNOWN)
        if recording is _UNKNOWN:
            recording = self._new_recording(tuple(key), host)
        if recording is None:
            return self._module(*args)
        for node in recording.uploads:
            values.append(upload(host[node]))
        tensors = recording.run(values, buffers, host)
        results: list[Any] = []
        for kind, which in recording.returned:
            if kind == "new":
                results.append(tensors[which])
            elif kind == "input":
                results.append(inputs[which])
            else:
                results.append(host[which] if kind == "host" else which)
        return results

    def _run_host(self, args: list[Any]) -> dict[Any, Any]:
        host: dict[Any, Any] = {node: args[n] for node, n in self._host_places}
        host.update(self._constants)
        if self._host_nodes:
            if self._host_part is None:
                self._host_part = _part(self._module, [*host], self._host_nodes)
            host.update(zip(self._host_nodes, self._host_part(*host.values()), strict=True))
        return host

    def _new_recording(self, key: tuple[Any, ...], host: dict[Any, Any]) -> "_GraphRecording | None":
        found = None
        if len(self._recordings) < MAX_RECORDINGS:
            try:
                found = self._record(key, host)
            except (NotRecordable, NotImplementedError) as why:
                _log.info("a graph of torch.compile runs op by op on the device: %s", why)
            self._recordings[key] = found
        return found

    def _record(self, key: tuple[Any, ...], host: dict[Any, Any]) -> "_GraphRecording":
        recorder = Recorder()
        with recording_to(recorder), torch.no_grad(), torch._C._DisableAutocast():
            env: dict[Any, Any] = dict(host)
            before: list[Handle] = []
            for node, one in zip(self._device_sources, key, strict=False):
                before.append(recorder.input())
                env[node] = _stand_in(one, before[-1])
            uploads: list[torch.fx.Node] = []
            numbers: dict[int, Any] = {}
            for node in self._used:
                one = host[node]
                if not isinstance(one, torch.Tensor):
                    continue
                recorder.line = line_of(node)
                layout = contiguous(tuple(one.shape), one.dtype)
                if one.dim() == 0 and one.dtype.is_floating_point and one.dtype.itemsize > 1:
                    value = emit_aten(
                        "number", (), {"value": float(one), "dtype": name_of(one.dtype)}, (), one.dtype
                    )
                    numbers[value.id] = node
                else:
                    uploads.append(node)
                    value = recorder.input()
                env[node] = create(layout, value)
            for node in self._device_nodes:
                recorder.line = line_of(node)
                env[node] = _run(node, env)
            recording = _GraphRecording(recorder, numbers)
            recording.uploads = uploads
            for n, (node, value) in enumerate(zip(self._device_sources, before, strict=True)):
                if env[node].untyped_storage().tapestry.value is not value:
                    recording.add_written(n, env[node])
            places = {node: n for n, node in enumerate(self._device_sources)}
            for one in self._end.args[0]:
                recording.returned.append(self._returned(one, env, places, recording))
            recording.end()
        return recording

    def _returned(
        self, one: Any, env: dict[Any, Any], places: dict[Any, int], recording: Recording
    ) -> tuple[str, Any]:
        if not isinstance(one, torch.fx.Node):
            return "value", one
        if one in places:
            return "input", places[one]
        if one not in self._device_nodes:
            return "host", one
        if is_on_device(env[one]):
            return "new", recording.add_output(env[one])
        raise NotRecordable("a result that is not on the device")


class _GraphRecording(Recording):
    """A recording, and how the graph's results are obtained from it."""

    def __init__(self, recorder: Recorder, numbers: dict[int, Any]) -> None:
        super().__init__(recorder, numbers)
        self.uploads: list[torch.fx.Node] = []
        """Nodes of the host whose values are uploaded for each call, after all other inputs."""
        self.returned: list[tuple[str, Any]] = []
        """For each result: the number of a new tensor or of an input; a node of the host; or the value
        itself."""


_UNKNOWN: Any = object()


def _run(node: torch.fx.Node, env: dict[Any, Any]) -> Any:
    args, kwargs = map_arg((node.args, node.kwargs), env.__getitem__)
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    assert callable(node.target)
    return node.target(*args, **kwargs)


def _part(module: torch.fx.GraphModule, inputs: list[torch.fx.Node], nodes: list[torch.fx.Node]) -> Any:
    """A function of the inputs that computes these nodes of a graph."""
    graph = torch.fx.Graph()
    copies = {node: graph.placeholder(f"given_{n}") for n, node in enumerate(inputs)}
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[node] for node in nodes))
    return torch.fx.GraphModule(module, graph).forward


def _attribute(module: Any, path: Any) -> Any:
    for name in str(path).split("."):
        module = getattr(module, name)
    return module


def _key(one: Any) -> Any:
    """The part of a recording's key for a value of the host."""
    if isinstance(one, torch.Tensor):
        return tuple(one.shape), one.dtype
    return (type(one), one) if isinstance(one, int | float | bool | complex | str) else id(one)


def _stand_in(key: Any, value: Handle) -> torch.Tensor:
    """A tensor of a layout, or of a geometry in a storage, whose value is recorded."""
    if isinstance(key, Layout):
        return create(key, value)
    geometry, dtype, base, base_dtype = key
    storage: Any = create_storage(base.numel * base_dtype.itemsize)
    storage.tapestry = Buffer(base, base_dtype, value)
    size, stride, offset = geometry
    return tensor_in(storage, size, stride, offset, dtype)
