"""The specification's surface: every file, class, function, flag, variable and snippet it names.

What is not there yet is an expected failure, and says what it comes with. The marks are strict: when the
thing arrives its test passes, that fails the run, and the mark has to go.
"""

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.programs import ROOT, run_python


def named(entries: Mapping[str, str | None]) -> list[Any]:
    """Parameters from a table of names: None for what exists, the reason for what does not yet."""
    return [
        pytest.param(name, id=name, marks=pytest.mark.xfail(strict=True, reason=reason) if reason else ())
        for name, reason in entries.items()
    ]


FILES = {
    # the layout
    "gt/__init__.py": None,
    "gt/ops/__init__.py": None,
    "gt/debug.py": None,
    "gt/errors.py": None,
    "gt/config.py": None,
    "gt/client/tensor.py": None,
    "gt/client/client.py": None,
    "gt/client/autograd.py": None,
    "gt/client/nn.py": None,
    "gt/client/optim.py": None,
    "gt/client/signals.py": None,
    "gt/dispatcher/dispatcher.py": None,
    "gt/dispatcher/tensor_handle.py": None,
    "gt/dispatcher/instruction_stream.py": None,
    "gt/dispatcher/sharding_modifier.py": None,
    "gt/worker/worker.py": None,
    "gt/worker/__main__.py": None,
    "gt/worker/hotpath_detector.py": None,
    "gt/worker/engine/base.py": None,
    "gt/worker/engine/pytorch.py": None,
    "gt/worker/engine/numpy.py": None,
    "gt/worker/engine/jax.py": None,
    "gt/transport/protocol.py": None,
    "gt/transport/connection.py": None,
    "gt/server/__main__.py": None,
    "triton_viz/core/trace.py": None,
    "triton_viz/core/client.py": None,
    "triton_viz/core/patch.py": None,
    "triton_viz/core/data.py": None,
    "triton_viz/core/config.py": None,
    "triton_viz/dsls/__init__.py": None,
    "triton_viz/clients/__init__.py": None,
    "triton_viz/clients/utils.py": None,
    "triton_viz/clients/tracer/tracer.py": None,
    "triton_viz/clients/profiler/profiler.py": None,
    "triton_viz/clients/sanitizer/sanitizer.py": None,
    "triton_viz/visualizer/interface.py": None,
    "triton_viz/visualizer/draw.py": None,
    "triton_viz/visualizer/analysis.py": None,
    "triton_viz/visualizer/tooltip.py": None,
    "triton_viz/static/index.html": None,
    "frontend/GLOSSARY.md": None,
    "frontend/ops": None,
    # scripts and examples
    "demo.py": None,
    "simple_launch.py": None,
    "test_simple.py": None,
    "test_grad.py": None,
    "examples/show_stats.py": None,
    # benchmarks
    "benchmarks/README.md": None,
    "benchmarks/pytorch_baseline.py": None,
    "benchmarks/gt_benchmark.py": None,
    "benchmarks/compare.py": None,
    # tests
    "tests/conftest.py": None,
    "tests/test_numerics.py": None,
    "tests/test_autograd.py": None,
    "tests/test_operations.py": None,
    "tests/test_nn.py": None,
    "tests/test_multi_client.py": None,
    "tests/test_varying_batch_sizes.py": None,
    "tests/test_sharding.py": None,
    "tests/test_distributed_matmul_patterns.py": None,
    "tests/test_tape_dump.py": None,
    "tests/test_hotpath_in_logs.py": None,
    # docs
    "docs/writing-a-stream-modifier.md": None,
    "docs/writing-a-client.md": None,
    "docs/adding-a-record.md": None,
    "docs/adding-a-visualization.md": None,
}


@pytest.mark.parametrize("path", named(FILES))
def test_file_exists(path: str):
    assert (ROOT / path).exists()


NAMES = {
    # gt: what users type
    "gt:tensor": None,
    "gt:from_numpy": None,
    "gt:zeros": None,
    "gt:randn": None,
    "gt:connect": None,
    "gt.debug:get_tape": None,
    "gt.debug:print_tape": None,
    "gt.debug:get_worker_stats": None,
    "gt.debug:print_worker_stats": None,
    "gt.client.tensor:Tensor": None,
    **{
        f"gt.client.tensor:Tensor.{name}": None
        for name in (
            *("__add__", "__sub__", "__mul__", "__truediv__", "__matmul__", "__gt__"),
            *("relu", "sigmoid", "tanh", "exp", "log", "sum", "mean", "backward", "data", "numpy"),
            *("grad", "requires_grad", "shape", "_binary_op", "_unary_op"),
        )
    },
    "gt.client.autograd:AutogradGraph": None,
    **{
        f"gt.client.nn:{name}": None
        for name in (
            *("Module", "Module.parameters", "Module.forward", "Linear"),
            *("mse_loss", "binary_cross_entropy", "cross_entropy_loss", "relu", "sigmoid", "tanh"),
        )
    },
    # gt: the stream
    "gt.dispatcher.dispatcher:Dispatcher": None,
    "gt.dispatcher.dispatcher:Dispatcher._recv_from_worker": None,
    "gt.dispatcher.tensor_handle:TensorHandle": None,
    "gt.dispatcher.tensor_handle:ShardInfo": None,
    "gt.dispatcher.instruction_stream:InstructionStream": None,
    "gt.dispatcher.sharding_modifier:ShardingStreamModifier": None,
    "gt.dispatcher.sharding_modifier:ShardingStreamModifier.process": None,
    "gt.dispatcher.sharding_modifier:ShardingStreamModifier.get_stats": None,
    "gt.worker.worker:Worker": None,
    "gt.worker.hotpath_detector:HotPathDetector": None,
    "gt.worker.hotpath_detector:HotPathDetector.process": None,
    "gt.worker.hotpath_detector:HotPathDetector.get_stats": None,
    "gt.transport.protocol:WorkerHotPathStart": None,
    "gt.transport.protocol:WorkerHotPathEnd": None,
    "gt.transport.protocol:ShardOp": None,
    "gt.transport.protocol:MatmulOp": None,
    "gt.transport.protocol:ReduceOp": None,
    "tests.test_numerics:test_addition": None,
    # triton_viz: core
    "triton_viz:trace": None,
    "triton_viz.core.trace:trace": None,
    "triton_viz.core.trace:launches": None,
    "triton_viz.core.trace:_normalize_client": None,
    "triton_viz.core.trace:TritonTrace": None,
    "triton_viz.core.trace:TritonTrace.run": None,
    "triton_viz.core.trace:TritonTrace.__call__": None,
    "triton_viz.core.trace:NKITrace": None,
    "triton_viz.core.client:Client": None,
    **{
        f"triton_viz.core.client:Client.{name}": None
        for name in (
            *("pre_run_callback", "post_run_callback", "arg_callback", "grid_callback", "grid_idx_callback"),
            *("register_op_callback", "finalize"),
        )
    },
    **{
        f"triton_viz.core.client:Client.{name}": None
        for name in ("register_for_loop_callback", "pre_warmup_callback", "post_warmup_callback", "lock_fn")
    },
    "triton_viz.core.client:ClientManager.add_clients": None,
    "triton_viz.core.client:ClientManager.patch_run": None,
    "triton_viz.core.client:ClientManager.finalize": None,
    "triton_viz.core.client:OpCallbacks": None,
    "triton_viz.core.patch:PatchOp": None,
    "triton_viz.core.patch:patch_op": None,
    "triton_viz.core.patch:patch_calls": None,
    "triton_viz.core.patch:patch_for_loop": None,
    "triton_viz.core.data:Launch": None,
    "triton_viz.core.data:Op": None,
    "triton_viz.core.data:Load": None,
    "triton_viz.core.data:Store": None,
    "triton_viz.core.data:Dot": None,
    "triton_viz.core.config:cfg": None,
    "triton_viz.core.config:cfg.num_sms": None,
    "triton_viz.dsls:OPERATION_REGISTRY": None,
    # triton_viz: clients and page
    "triton_viz.clients:Tracer": None,
    "triton_viz.clients:Profiler": None,
    "triton_viz.clients:Sanitizer": None,
    "triton_viz.visualizer.interface:update_global_data": None,
    "triton_viz.visualizer.interface:raw_tensor_data": None,
    "triton_viz.visualizer.draw:get_visualization_data": None,
    "triton_viz.visualizer.draw:collect_launch": None,
    "triton_viz.visualizer.analysis:analyze_records": None,
}


@pytest.mark.parametrize("name", named(NAMES))
def test_name_exists(name: str):
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)


PARAMETERS = {
    "gt:tensor requires_grad": None,
    "gt:from_numpy requires_grad": None,
    "gt.worker.worker:Worker backend": None,
    "gt.dispatcher.sharding_modifier:ShardingStreamModifier enable_sharding": None,
    "gt.dispatcher.sharding_modifier:ShardingStreamModifier shard_threshold": None,
    "gt.transport.protocol:ShardOp tensor": None,
    "gt.transport.protocol:ShardOp num_shards": None,
    "gt.transport.protocol:MatmulOp result": None,
    "gt.transport.protocol:ReduceOp result": None,
    "gt.dispatcher.tensor_handle:ShardInfo axis": None,
    "gt.dispatcher.tensor_handle:ShardInfo num_shards": None,
    "gt.dispatcher.tensor_handle:ShardInfo shard_index": None,
    "triton_viz.core.trace:trace client": None,
    "triton_viz.core.trace:trace backend": None,
    "triton_viz.core.client:OpCallbacks before_callback": None,
    "triton_viz.core.client:OpCallbacks after_callback": None,
    "triton_viz.core.client:OpCallbacks op_overrider": None,
}


@pytest.mark.parametrize("name", named(PARAMETERS))
def test_parameter_exists(name: str):
    module, path, parameter = re.split("[: ]", name)
    assert parameter in inspect.signature(getattr(importlib.import_module(module), path)).parameters


DEFAULTS = {"gt.dispatcher.sharding_modifier:ShardingStreamModifier enable_sharding=False": None}


@pytest.mark.parametrize("name", named(DEFAULTS))
def test_parameter_has_the_default(name: str):
    module, path, parameter, value = re.split("[: =]", name)
    found = inspect.signature(getattr(importlib.import_module(module), path)).parameters[parameter]
    assert str(found.default) == value


ATTRIBUTES = {"gt.dispatcher.sharding_modifier:ShardingStreamModifier tensor_sharded": None}


@pytest.mark.parametrize("name", named(ATTRIBUTES))
def test_instance_has(name: str):
    module, path, attribute = re.split("[: ]", name)
    assert hasattr(getattr(importlib.import_module(module), path)(), attribute)


CLIENT_NAMES = {"tracer": None, "profiler": None, "sanitizer": None}


@pytest.mark.parametrize("name", named(CLIENT_NAMES))
def test_client_can_be_chosen_by_name(name: str):
    from triton_viz.core.trace import _normalize_client

    assert name == _normalize_client(name).NAME


BACKENDS = {"triton": None, "nki": None}


@pytest.mark.parametrize("name", named(BACKENDS))
def test_backend_is_registered(name: str):
    from triton_viz.dsls import OPERATION_REGISTRY

    assert OPERATION_REGISTRY[name].operations


# What each does is tested beside it (test_tape_dump.py); here, that none is missing.
VARIABLES = {
    "GT_VERBOSE": None,
    "GT_DEBUG_CLIENT": None,
    "GT_DEBUG_DISPATCHER": None,
    "GT_DEBUG_WORKER": None,
    "GT_DEBUG_COMPILE": None,
    "GT_AUTO_COMPILE": None,
    "GT_INSTRUCTION_LOG": None,
}


@pytest.mark.parametrize("name", named(VARIABLES))
def test_variable_is_documented_where_it_is_read(name: str):
    from gt import config

    assert name in (config.__doc__ or "")


STATISTICS = {
    "total_instructions": None,
    "hot_instructions": None,
    "unique_sequences": None,
    "hot_sequences": None,
}


@pytest.mark.parametrize("name", named(STATISTICS))
def test_worker_statistics_hold(name: str):
    import gt

    (gt.ones(2) + 1).tolist()
    workers = gt.debug.get_worker_stats()
    assert workers
    assert all(name in stats for stats in workers.values())


ENDPOINTS = {"/api/data": None, "/api/op_code": None}


@pytest.mark.parametrize("url", named(ENDPOINTS))
def test_endpoint_exists(url: str):
    from triton_viz.visualizer.interface import create_app

    assert url in {rule.rule for rule in create_app().url_map.iter_rules()}


@pytest.mark.usefixtures("no_launches")
def test_the_page_receives_ops_with_a_uuid_and_a_type():
    from examples import vector_add
    from triton_viz.visualizer.interface import create_app

    vector_add.run()
    ops = create_app().test_client().get("/api/data").get_json()["visualization_data"]
    assert ops
    assert all(op["uuid"] and op["type"] for op in ops)


CONTRACT = {
    "uuid": None,
    "type": None,
    "visualization_data": None,
    "sbuf": None,
    "histogram": None,
}


@pytest.mark.parametrize("word", named(CONTRACT))
def test_the_pages_contract_documents(word: str):
    assert word in (ROOT / "frontend/GLOSSARY.md").read_text()


COMMANDS = {
    "gt.server -p": None,
    "gt.worker --host": None,
    "gt.worker -p": None,
    "simple_launch --no-test": None,
    "simple_launch --workers": None,
}


@pytest.mark.parametrize("command", named(COMMANDS))
def test_command_has_the_flag(command: str):
    module, flag = command.split()
    assert re.search(rf"(^|\W){flag}\b", run_python("-m", module, "--help").stdout)


LOGGED = {
    **dict.fromkeys(("RECV", "SEND", "WORKER_SEND", "WORKER_RECV", "CONNECT", "DISCONNECT")),
    **dict.fromkeys(("BinaryOp", "WorkerBinaryOp", "CreateTensor", "WorkerCreateTensor")),
    "WorkerHotPathStart": None,
    "WorkerHotPathEnd": None,
}


@pytest.fixture(scope="module")
def instruction_log(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The log of a program that repeats itself."""
    log = tmp_path_factory.mktemp("log") / "gt.log"
    code = "import gt\nx = gt.randn(8)\nfor _ in range(100): y = (x + x).relu().sum()\ny.item()"
    run_python("-c", code, environment={"GT_INSTRUCTION_LOG": str(log), "GT_AUTO_COMPILE": "1"})
    return log.read_text()


@pytest.mark.parametrize("name", named(LOGGED))
def test_the_instruction_log_calls_it(name: str, instruction_log: str):
    assert re.search(rf"\| {name} ", instruction_log)


# --- snippets: what the documents show being typed, each in our own words, each a program of its own ---


def auto_server() -> None:
    import gt

    left, right = gt.tensor([1, 2, 3, 4]), gt.tensor([5, 6, 7, 8])
    assert (left + right).data.numpy().tolist() == [6, 8, 10, 12]


def autograd_of_whole_numbers() -> None:
    import gt

    a = gt.tensor([1, 2, 3], requires_grad=True)
    a.relu().sum().backward()
    assert a.grad.data.numpy().tolist() == [1, 1, 1]  # type: ignore[union-attr]


def module_with_parameters_and_a_training_step() -> None:
    import gt
    from gt.client import nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(10, 20), nn.Linear(20, 1)
            self._parameters = self.fc1.parameters() + self.fc2.parameters()

        def forward(self, x: Any) -> Any:
            return self.fc2(self.fc1(x).relu())

    model = Model()
    nn.mse_loss(model(gt.randn(10)), gt.zeros(1)).backward()
    assert len(model.parameters()) == 4
    assert all(parameter.grad is not None for parameter in model.parameters())


def a_server_two_workers_and_a_client() -> None:
    import socket
    import subprocess
    import sys

    import gt

    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    commands = [["gt.server", "-p", port], *[["gt.worker", "--host", "localhost", "-p", port]] * 2]
    processes = [subprocess.Popen([sys.executable, "-m", *command]) for command in commands]
    try:
        gt.connect(f"localhost:{port}")
        assert (gt.tensor([1, 2, 3, 4]) + 1).data.numpy().tolist() == [2, 3, 4, 5]
        assert len(gt.debug.get_worker_stats()) == 2
    finally:
        for process in processes:
            process.terminate()
            process.wait(timeout=20)


def connecting_where_nobody_listens_is_a_clear_error() -> None:
    import gt

    with pytest.raises(gt.errors.GTError, match="localhost:9"):
        gt.connect("localhost:9")


def worker_statistics() -> None:
    import gt

    x = gt.randn(100, 100)
    y = x @ x
    y.numpy()
    assert gt.debug.get_worker_stats()
    gt.debug.print_worker_stats()


def a_large_tensor_has_its_whole_shape() -> None:
    import gt

    gt.zeros(1, 1)
    assert gt.randn(128, 64).data.numpy().shape == (128, 64)


def gradient_of_relu_equals_pytorchs() -> None:
    import numpy as np
    import torch

    import gt

    theirs = torch.randn(10, 10, requires_grad=True)
    torch.relu(theirs).sum().backward()
    ours = gt.from_numpy(theirs.detach().numpy(), requires_grad=True)
    ours.relu().sum().backward()
    assert np.allclose(theirs.grad.numpy(), ours.grad.data.numpy())  # type: ignore[union-attr]


def a_sum_is_a_number_without_dimensions() -> None:
    import gt

    assert gt.randn(10, 10).sum().data.numpy().shape == ()


def a_sum_equals_pytorchs() -> None:
    import numpy as np
    import torch

    import gt

    data = np.random.randn(10, 10).astype(np.float32)
    assert np.allclose(gt.from_numpy(data).sum().data.numpy(), torch.from_numpy(data).sum().item(), atol=1e-4)


def the_log_set_from_inside_the_program_holds_the_matmul() -> None:
    import os
    import tempfile
    from pathlib import Path

    import gt

    log = Path(tempfile.mkdtemp()) / "debug.log"
    os.environ["GT_INSTRUCTION_LOG"] = str(log)
    (gt.randn(128, 64) @ gt.randn(64, 32)).numpy()
    text = log.read_text()
    for wanted in ("tensor_id", "WORKER_SEND", "op=matmul", "CreateTensor"):
        assert wanted in text, wanted


def the_autograd_tape() -> None:
    import gt

    y = (gt.ones(2, requires_grad=True) * 2).sum()
    assert len(gt.debug.get_tape()) == 2
    gt.debug.print_tape()
    del y


SNIPPETS: dict[Callable[[], None], str | None] = {
    auto_server: None,
    autograd_of_whole_numbers: None,
    module_with_parameters_and_a_training_step: None,
    a_server_two_workers_and_a_client: None,
    connecting_where_nobody_listens_is_a_clear_error: None,
    worker_statistics: None,
    a_large_tensor_has_its_whole_shape: None,
    gradient_of_relu_equals_pytorchs: None,
    a_sum_is_a_number_without_dimensions: None,
    a_sum_equals_pytorchs: None,
    the_log_set_from_inside_the_program_holds_the_matmul: None,
    the_autograd_tape: None,
}


@pytest.mark.parametrize("name", named({snippet.__name__: reason for snippet, reason in SNIPPETS.items()}))
def test_snippet_runs_in_a_fresh_program(name: str):
    run_python("-c", f"from tests.test_seed_surface import {name}; {name}()")


SCRIPTS = {
    "demo.py": None,
    "simple_launch.py": None,
    "simple_launch.py --workers 2": None,
    "test_grad.py": None,
    "examples/show_stats.py": None,
    "benchmarks/pytorch_baseline.py": None,
    "benchmarks/gt_benchmark.py": None,
    "benchmarks/compare.py": None,
}


@pytest.mark.parametrize("command", named(SCRIPTS))
def test_script_runs_by_itself(command: str):
    script, *arguments = command.split()
    assert run_python(Path(script).name, *arguments, cwd=(ROOT / script).parent).stdout
