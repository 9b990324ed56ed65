"""The specification of gt, quoted and run: debug output, the tape, errors, benchmarks, and files."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gt
from gt.client import session as session_module
from gt.server.embedded import LocalServer
from tests.gt.helpers.seeds import DATA, lines
from tests.gt.helpers.servers import Cluster, connect
from tests.gt.helpers.spread import using
from tests.gt.helpers.threads import ThreadServer
from tests.moved import moved
from tests.programs import ROOT, run_python

# --- debug output ---

SMALL = "import gt; gt.init(engine='numpy'); (gt.tensor([1.0]) + 1).tolist()"


def test_gt_is_silent_by_default():
    """'By default, GT is completely silent - no framework output at all. Only errors are shown.'"""
    done = run_python("-c", SMALL)
    assert (done.stdout, done.stderr) == ("", "")


def test_flags_can_be_combined():
    """'GT_VERBOSE: startup, connections, registration', 'GT_DEBUG_CLIENT: tensor operations, connections',
    'GT_DEBUG_DISPATCHER: worker registration, client handling',
    'GT_DEBUG_WORKER: command processing, registration'; 'Combine multiple flags'"""
    flags = ("GT_VERBOSE", "GT_DEBUG_CLIENT", "GT_DEBUG_DISPATCHER", "GT_DEBUG_WORKER")
    said = run_python("-c", SMALL, environment=dict.fromkeys(flags, "1")).stderr
    for line in (
        r"\[gt\] worker auto_worker joined",
        r"\[gt client\] connected as c1",
        r"\[gt client\] BinaryOp result=1 op=add",
        r"\[gt dispatcher\] worker auto_worker registered",
        r"\[gt dispatcher\] client c1 connected",
        r"\[gt worker\] auto_worker \(numpy\) registered",
        r"\[gt worker\] auto_worker: c1: BinaryOp result=1 op=add",
    ):
        assert re.search(line, said), line


def test_compilation_debug_output():
    """'GT_DEBUG_COMPILE=1 - Compilation debug messages (hot path detection, compilation progress)'"""
    loop = "for _ in range(900): x = (x + 1).tanh()"
    code = f"import gt; gt.init(engine='numpy'); x = gt.ones(2)\n{loop}\nx.tolist()"
    assert "[gt compile]" in run_python("-c", code, environment={"GT_DEBUG_COMPILE": "1"}).stderr


# --- debugging ---


def test_the_log_shows_each_command_and_its_reply(log: Path, server: LocalServer):
    """'Expected: RECV BinaryOp → WORKER_SEND WorkerBinaryOp → WORKER_RECV Response → SEND Response';
    'Each command receives either: "ack" for successful operation, Response data (e.g., for .data requests'"""
    (gt.tensor([1.0, 2.0]) + 1).tolist()
    (received,) = [one for one in lines(log, "RECV") if "GetData" in one]
    (sent,) = [one for one in lines(log, "SEND") if "GetData" in one]
    assert re.search(r"\| +8B \|.*success=True", sent), "two numbers of four bytes"
    assert len(lines(log, "SEND")) == len(lines(log, "RECV"))
    assert log.read_text().index(received) < log.read_text().index(sent)


@pytest.mark.parametrize("compiles", ["0", "1"])
def test_worker_stats(compiles: str):
    """'Stats include: total_instructions, hot_instructions, unique_sequences, hot_sequences,
    compilation stats (if GT_AUTO_COMPILE=1)'"""
    code = """
import gt, json
x = gt.randn(100, 100)
for _ in range(400):
    x = (x @ x).tanh() * 0.5 + 0.25
x.numpy()
print(json.dumps(gt.debug.get_worker_stats()))
"""
    stats = json.loads(run_python("-c", code, environment={"GT_AUTO_COMPILE": compiles}).stdout)
    (worker,) = stats.values()
    assert worker["total_instructions"] >= 1600
    assert worker["hot_instructions"] > 0.7 * worker["total_instructions"]
    assert worker["unique_sequences"] >= worker["hot_sequences"] >= 1
    assert ("compiled" in worker) == (compiles == "1")


def test_cross_worker_operations(two_workers: Cluster):
    """'Cross-Worker Operations ... Fix: Implement cross-worker tensor movement in dispatcher'"""
    client = connect(two_workers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_module, "_current", client)
        a, b = DATA.repeat(20, 0), DATA.repeat(20, 1)
        product = gt.from_numpy(a) @ gt.from_numpy(b)  # each is sharded over both workers
        np.testing.assert_allclose((product + product.T.sum()).numpy(), a @ b + (a @ b).sum(), rtol=1e-3)
    client.close()


def test_tape_analysis_of_a_sharded_program(log: Path):
    """'a = gt.randn(128, 64) # Should be sharded' ... 'How were a and b created? (Should be multiple
    WORKER_SEND CreateTensor)'; 'grep "WORKER_SEND.*matmul"'; 'grep "ERROR\\|FAILED"'"""
    with using(ThreadServer(2, "numpy")):
        a = gt.randn(128, 64)
        b = gt.randn(64, 32)
        c = a @ b
        del c
    sent = lines(log, "WORKER_SEND")
    assert len([one for one in sent if "WorkerCreateTensor" in one and "tensor_id=c1_0 " in one]) == 2
    assert len([one for one in sent if "op=matmul" in one]) == 2
    assert not re.search("ERROR|FAILED", log.read_text())
    del a, b


def test_responses_come_with_their_size(server: LocalServer, monkeypatch: pytest.MonkeyPatch):
    """'response, _ = self._recv_from_worker(worker)'"""
    found: list[Any] = []
    received = server.dispatcher._recv_from_worker

    def noted(*arguments: Any) -> Any:
        found.append(received(*arguments))
        return found[-1]

    monkeypatch.setattr(server.dispatcher, "_recv_from_worker", noted)
    gt.ones(5).tolist()
    _, size = found[-1]
    assert size == 20


def test_gradients_equal_pytorchs(server: LocalServer):
    """'x_gt = gt.from_numpy(x_pt.detach().numpy(), requires_grad=True)' ...
    'np.allclose(x_pt.grad.numpy(), ...)'"""
    x_pt = torch.randn(10, 10, requires_grad=True)
    torch.relu(x_pt).sum().backward()
    x_gt = gt.from_numpy(x_pt.detach().numpy(), requires_grad=True)
    x_gt.relu().sum().backward()
    assert np.allclose(x_pt.grad.numpy(), x_gt.grad.data.numpy())  # type: ignore[union-attr]


def test_a_sum_has_no_dimensions_and_equals_pytorchs(server: LocalServer):
    """'assert y.data.numpy().shape == ()'; 'np.allclose(result_gt, result_pt)'"""
    result = gt.from_numpy(DATA).sum().data.numpy()
    assert result.shape == ()
    assert np.allclose(result, torch.from_numpy(DATA).sum().item(), atol=1e-5)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("gt.ones(2, 3) @ gt.ones(4, 5)", "mat1 and mat2 shapes cannot be multiplied"),
        ("gt.connect('localhost:9', timeout=0.2)", "no server answers at localhost:9"),
    ],
)
def test_error_messages(server: LocalServer, code: str, message: str):
    """'Common Error Messages'"""
    with pytest.raises((RuntimeError, gt.errors.GTError), match=message):
        eval(code, {"gt": gt})


def test_a_tensor_that_does_not_exist(server: LocalServer):
    """'Tensor not found: Wrong worker, freed tensor, or bad tensor ID'"""
    from gt.stream.instructions import GetData

    with pytest.raises(gt.errors.ProtocolError, match="Tensor not found"):
        server.dispatcher.receive("c1", 1, [GetData(0, 99)])


# --- benchmarks and code organization ---


def test_what_the_benchmarks_measure(server: LocalServer):
    """'Matrix multiplication (1000x1000), Linear layer forward pass, MSE loss computation, Backward pass
    (autograd), Activation functions (ReLU, Sigmoid, Tanh)'"""
    from benchmarks.workloads import jobs

    names = []
    for name, job in jobs(gt):
        job()
        names.append(name)
    expected = ["matmul 1000x1000", "linear forward", "mse loss", "backward", "relu", "sigmoid", "tanh"]
    assert names == [name for name, _ in jobs(torch)] == expected


FILES = """
gt/client/tensor.py gt/client/client.py gt/client/autograd.py gt/client/nn.py gt/dispatcher/dispatcher.py
gt/dispatcher/tensor_handle.py gt/worker/worker.py gt/transport/protocol.py gt/transport/connection.py
gt/server/__main__.py benchmarks/README.md benchmarks/pytorch_baseline.py benchmarks/gt_benchmark.py
benchmarks/compare.py tests/conftest.py tests/test_numerics.py tests/test_autograd.py tests/test_operations.py
tests/test_nn.py tests/test_multi_client.py tests/test_sharding.py tests/test_distributed_matmul_patterns.py
tests/test_varying_batch_sizes.py simple_launch.py demo.py test_grad.py
"""


@pytest.mark.parametrize("path", FILES.split())
def test_code_organization(path: str):
    """'Code Organization' and 'Key test files'; `pytest tests/test_nn.py` finds tests in their folders."""
    assert (ROOT / moved(path)).is_file()


def test_all_imports_use_the_gt_prefix():
    """'All imports use `gt.` prefix for clarity'"""
    for path in (ROOT / "gt").rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text()))
        assert not [node.lineno for node in nodes if isinstance(node, ast.ImportFrom) and node.level], path
