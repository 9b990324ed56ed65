"""The specification of gt, statement by statement, each run. That of the stream: test_seed_gt_stream.py.

Its scripts that measure are run in test_benchmarks.py, Ctrl-C of `simple_launch.py` in test_simple_launch.py,
and `pytest -v` in test_running_tests.py.
"""

import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gt
from gt.autograd.graph import GRAPH, AutogradGraph
from gt.client import nn
from gt.dispatcher.tensor_handle import ShardInfo, TensorHandle
from gt.server.embedded import LocalServer
from gt.worker import Worker
from tests.gt.helpers.seeds import DATA, lines
from tests.gt.helpers.servers import Cluster, connect
from tests.gt.helpers.spread import using
from tests.gt.helpers.threads import ThreadServer
from tests.programs import TIMEOUT, run_python


def test_auto_server():
    """'No connection needed - server auto-starts!' 'data = c.data.numpy()'"""
    code = "import gt; a, b = gt.tensor([1, 2, 3, 4]), gt.tensor([5, 6, 7, 8]); print((a + b).data.numpy())"
    assert run_python("-c", code).stdout == "[ 6  8 10 12]\n"


def test_manual_server(two_workers: Cluster):
    """'python -m gt.server -p 12345'; 'python -m gt.worker --host localhost -p 12345' (twice);
    'gt.connect('localhost:12345')'"""
    code = f"""
import gt, json
gt.connect('localhost:{two_workers.port}')
a = gt.tensor([1, 2, 3, 4])
print((a + 1).data.numpy().tolist(), sorted(gt.debug.get_worker_stats()))
"""
    assert run_python("-c", code).stdout == "[2, 3, 4, 5] ['worker_0', 'worker_1']\n"


def test_the_test_can_be_run_separately(two_workers: Cluster):
    """'If the system is already running, you can run the test in another terminal: python test_simple.py'"""
    assert run_python("test_simple.py", two_workers.address).stdout.endswith("ok\n")


# --- features ---

OPERATIONS = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "@": lambda x, y: x @ y,
    ">": lambda x, y: x > y,
    **{name: lambda x, y, name=name: getattr(x, name)() for name in ("relu", "sigmoid", "tanh", "exp")},
    **{name: lambda x, y, name=name: getattr(x.exp(), name)() for name in ("log", "sum", "mean")},
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_pytorchs(server: LocalServer, name: str):
    """'All standard PyTorch operations are supported'; 'All operations automatically track gradients'"""
    call = OPERATIONS[name]
    inputs = DATA, DATA.T + 3
    ours = [gt.from_numpy(one, requires_grad=True) for one in inputs]
    theirs = [torch.tensor(one, requires_grad=True) for one in inputs]
    result, expected = call(*ours), call(*theirs)
    np.testing.assert_allclose(result.data.numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-6)
    if name == ">":
        return
    result.sum().backward()
    expected.sum().backward()
    for one, other in zip(ours, theirs, strict=True):
        if other.grad is not None:
            np.testing.assert_allclose(one.grad.data.numpy(), other.grad.numpy(), rtol=1e-4, atol=1e-5)  # type: ignore[union-attr]


def test_autograd_of_integers(server: LocalServer):
    """'a = gt.tensor([1, 2, 3], requires_grad=True)' ... 'print(a.grad.data.numpy())'"""
    a = gt.tensor([1, 2, 3], requires_grad=True)
    b = a.relu()
    loss = b.sum()
    loss.backward()
    assert a.grad.data.numpy().tolist() == [1, 1, 1]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["relu", "sigmoid", "tanh"])
def test_activation_functions(server: LocalServer, name: str):
    """'Activation Functions: nn.relu, nn.sigmoid, nn.tanh'"""
    expected = getattr(torch, name)(torch.tensor(DATA)).numpy()
    np.testing.assert_allclose(getattr(nn, name)(gt.from_numpy(DATA)).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_loss_functions(server: LocalServer):
    """'nn.mse_loss', 'nn.binary_cross_entropy', 'nn.cross_entropy_loss - Cross Entropy (with logits)'"""
    x, chance = torch.tensor(DATA), torch.sigmoid(torch.tensor(DATA))
    goal, classes = (torch.tensor(DATA.T) > 0).float(), torch.arange(6) % 6
    F = torch.nn.functional
    cases: list[tuple[Any, Any, Any]] = [
        (nn.mse_loss, F.mse_loss, (x, goal)),
        (nn.binary_cross_entropy, F.binary_cross_entropy, (chance, goal)),
        (nn.cross_entropy_loss, F.cross_entropy, (x, classes)),
    ]
    for loss, expected, given in cases:
        ours = loss(*(gt.from_numpy(one.numpy()) for one in given))
        assert ours.item() == pytest.approx(expected(*given).item(), rel=1e-5)


def test_a_model_is_defined_and_trained(server: LocalServer):
    """'class MyModel(nn.Module)' ... 'loss.backward()' ... 'param = param - lr * param.grad'"""

    class MyModel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1 = nn.Linear(10, 20)
            self.fc2 = nn.Linear(20, 1)
            self._parameters = self.fc1.parameters() + self.fc2.parameters()

        def forward(self, x: Any) -> Any:
            x = self.fc1(x).relu()
            return self.fc2(x)

    model, x, target = MyModel(), gt.randn(10), gt.ones(1)
    assert len(model.parameters()) == 4
    losses = []
    for _ in range(5):
        loss = nn.mse_loss(model(x), target)
        loss.backward()
        losses.append(loss.item())
        for param in model.parameters():
            param.data = (param - 0.01 * param.grad).data
            param.grad = None
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


# --- architecture ---


def test_data_is_requested_when_it_is_accessed(log: Path, server: LocalServer):
    """'When .data is accessed, client requests data from dispatcher.'"""
    x = gt.tensor([1.0]) + 1
    gt.debug.get_worker_stats()
    assert "op=add" in log.read_text()
    assert "GetData" not in log.read_text()
    x.data.numpy()
    assert "GetData" in lines(log, "RECV")[-1]


def test_the_tape_has_no_interaction_with_computation(log: Path, server: LocalServer):
    """'AutogradGraph: ... purely abstract with ZERO interaction with computation. Only creates more
    tensors.'"""
    assert isinstance(GRAPH, AutogradGraph)
    counts = []
    for requires_grad in (False, True):
        x = gt.tensor([1.0, 2.0], requires_grad=requires_grad)
        y = (x * 2).exp().sum()
        before = len(lines(log, "RECV"))
        y.item()
        counts.append(len([one for one in lines(log, "RECV")[before:] if " op=" in one]))
        del x, y
        gt.debug.get_worker_stats()
    assert counts[0] == counts[1] == 3


def test_garbage_collection_frees_tensors(log: Path, server: LocalServer):
    """'Uses Python's native garbage collection to emit instructions telling dispatcher when tensors can
    be freed.'"""
    x = gt.ones(100)
    x.tolist()
    assert gt.debug.get_worker_stats()["auto_worker"]["tensors"] == 1
    number = x.id
    del x
    assert gt.debug.get_worker_stats()["auto_worker"]["tensors"] == 0
    assert re.search(rf"\| FreeTensor .*tensor_id={number}$", log.read_text(), re.MULTILINE)


def test_a_tensor_handle_maps_a_clients_tensor_to_its_place(server: LocalServer):
    """'TensorHandle - maps each client:tensor to physical locations (including sharding/replication
    details).'"""
    x = gt.ones(3)
    x.tolist()
    (session,) = server.dispatcher.sessions.values()
    handle = session.handles[x.id]
    assert isinstance(handle, TensorHandle)
    assert handle.worker == "auto_worker"


def test_a_sharded_tensors_handle_has_the_worker_of_each_shard():
    """'Check ShardInfo metadata (axis, num_shards, shard_index)'"""
    threads = ThreadServer(4, "numpy")
    with using(threads):
        a = gt.randn(128, 64)  # with 4 workers: 4 x (32, 64)
        assert a.data.numpy().shape == (128, 64)
        (session,) = threads.dispatcher.sessions.values()
        assert session.sharding is not None
        shards = session.sharding.tensor_sharded[a.id].shards()
    assert shards == [
        (f"worker_{n}", ShardInfo(axis=0, num_shards=4, shard_index=n), (32, 64)) for n in range(4)
    ]


@pytest.mark.parametrize("backend", ["pytorch", "numpy", "jax"])
def test_backends(backend: str):
    """'Backed by different engines (numpy, pytorch, jax)'; 'pass backend='numpy' to Worker() constructor'"""
    if backend == "jax":
        pytest.importorskip("jax")
    from gt.stream.instructions import GetData, Op, Upload

    worker = Worker(backend=backend)
    order = [Upload(0, DATA), Op(1, "matmul", (0, 0), None, 0), GetData(7, 1)]
    (reply,) = worker.execute("c1", order).data
    assert reply.array is not None
    np.testing.assert_allclose(reply.array, DATA @ DATA, rtol=1e-4)
    assert worker.get_stats()["engine"] == backend


def test_operations_are_functional(server: LocalServer):
    """'All operations are functional (lazily constructed tape).'"""
    x = gt.tensor([1.0, 2.0])
    y = x + 1
    assert (x.tolist(), y.tolist()) == ([1, 2], [2, 3])
    assert server.worker.total_instructions > 0


def test_multiple_clients(two_workers: Cluster):
    """'Multiple Clients: Dispatcher handles concurrent clients.'"""
    results: dict[int, list[float]] = {}

    def work(number: int) -> None:
        client = connect(two_workers)
        first = client.create(np.full(4, number, "float32"))
        results[number] = client.fetch(first).tolist()
        client.close()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert results == {n: [n] * 4 for n in range(4)}


# --- running it ---


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("simple_launch.py -p {port}", r"worker_0 \(pytorch\) joined; 1 in all.*\nok\n"),
        (
            "simple_launch.py --workers 2 -p {port} --engine numpy",
            r"joined; 2 in all(.*\n)*worker_1 \(numpy\) carried out(.*\n)*ok\n",
        ),
        ("demo.py", r"gt trained a model"),
        ("test_grad.py", r"\w"),
        ("-m examples.show_stats", r"total_instructions +\d+\n(.*\n)*.*hot_sequences"),
    ],
)
def test_scripts(empty: Cluster, command: str, says: str):
    """'python simple_launch.py: This automatically runs the test after starting the system.'; '--workers 2';
    'demo.py: Simple API demo'; 'test_grad.py: Standalone gradient test';
    'Example script: examples/show_stats.py'"""
    script = empty.run(*command.format(port=empty.port).split())
    assert script.ends() == 0, script.output
    assert re.search(says, script.output, re.DOTALL if "pytorch" in says else 0), script.output
