"""Adding an op is adding a row, and adding an engine is adding a class and a line."""

import dataclasses
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gt
from gt.ops import TABLE, Method, Row, Samples, register
from gt.ops.engines import ENGINES, EngineEntry, Functions
from gt.ops.run_time import is_run_time
from gt.stream.sequences import alike
from gt.tensors import api
from gt.tensors.generated.in_place import GeneratedInPlace
from gt.tensors.generated.methods import GeneratedMethods
from gt.worker.engine.numpy import NumpyEngine
from tests.gt.samples.generated import CALLS
from tools.op_list import line


def torch_cube(x: Any) -> Any:
    return x * x * x


def array_cube(xp: Any, x: Any) -> Any:
    return xp.power(x, 3)


CUBE = Row(
    "cube",
    "UnaryOp",
    lambda inputs, attrs: inputs[0],
    Functions(f"{__name__}:torch_cube", f"{__name__}:array_cube"),
    (lambda g, n: g * 3 * n.inputs[0].square(),),
    methods=(Method("cube third_power", "The third power of each element.", in_place=True),),
    samples=Samples("math", 0.5, 2.0),
)
"""All that has to be written for a new op; its functions are above."""


@pytest.fixture(autouse=True)
def a_server_of_its_own() -> Iterator[None]:
    yield
    gt.close()


@pytest.fixture
def cube() -> Iterator[Row]:
    yield register(CUBE)
    del TABLE["cube"]
    for name in ("cube", "third_power"):
        delattr(GeneratedMethods, name)
        delattr(GeneratedInPlace, f"{name}_")
        del api.FUNCTIONS[name]


@pytest.mark.parametrize("engine", ["pytorch", "numpy"])
def test_a_row_makes_method_function_in_place_form_and_gradient(cube: Row, engine: str):
    gt.init(engine=engine)
    x: Any = gt.tensor([1.0, 2.0, -3.0], requires_grad=True)
    library: Any = gt
    for y in (x.cube(), x.third_power(), library.cube(x), library.third_power(input=x)):
        np.testing.assert_array_equal(y.data.numpy(), [1, 8, -27])
    x.cube().sum().backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), [3, 12, 27])
    z: Any = gt.tensor([2.0])
    assert z.cube_() is z
    assert z.third_power_().tolist() == [512]


def test_a_row_makes_documentation_and_samples(cube: Row):
    tensor: Any = gt.Tensor
    assert tensor.cube.__doc__ == "The third power of each element."
    assert tensor.cube_.__doc__ == "As `cube`, in place."
    assert list(inspect.signature(tensor.cube).parameters) == ["self"]
    typed = "`x.cube()`, `gt.cube()`, `x.cube_()`, `x.third_power()`, `gt.third_power()`, `x.third_power_()`"
    assert line(cube).startswith(f"| `cube` | UnaryOp | yes | {typed} |")
    assert cube.samples is not None
    samples = CALLS[cube.samples.of](cube)
    gt.init(engine="numpy")
    for sample in samples:
        (array,) = sample.arrays
        np.testing.assert_allclose(np.asarray(sample.call(gt.from_numpy(array))), array**3, rtol=2e-2)


def test_an_elementwise_row_is_sharded_along_every_axis(cube: Row):
    assert cube.sharding is not None
    spec = gt.ones(4, 6)._value.spec
    assert [(split.inputs, split.output) for split in cube.sharding((spec,), {}, spec)] == [
        ((0,), 0),
        ((1,), 1),
    ]


def test_a_name_is_registered_once(cube: Row):
    with pytest.raises(ValueError, match="the op table has a row 'cube' already"):
        register(CUBE)
    for taken in ("div", "third_power", "shape"):
        row = dataclasses.replace(CUBE, name="other", methods=(Method(f"other {taken}", ""),))
        with pytest.raises(ValueError, match=f"other: a tensor has an attribute '{taken}' already"):
            register(row)
    assert "other" not in TABLE
    assert not hasattr(gt.Tensor, "other")


def test_an_unknown_function_of_gt_is_still_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'gt' has no attribute 'cube'"):
        _ = gt.cube


PROGRAM = """
import numpy as np, gt
from gt.ops import TABLE
from gt.worker.engine.base import attributes
from tests.gt.test_adding_an_op import CUBE, register

register(CUBE)
for engine in ("numpy", "pytorch"):
    gt.init(engine=engine)
    big = gt.arange(4096, dtype="float32", requires_grad=True)
    total = big.cube().sum() / 1e9
    for _ in range(4):  # the backward pass is replayed
        (big.cube().sum() / 1e9).backward()
    print(engine, round(total.item(), 3), attributes("cube") >= {"x"}, round(big.grad[10].item() * 1e9))
"""


def test_a_row_works_in_a_program_of_its_own():
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    total = sum(n**3 for n in range(4096)) / 1e9
    for said, engine in zip(run.stdout.splitlines(), ("numpy", "pytorch"), strict=True):
        name, value, known, gradient = said.split()
        assert (name, known, gradient) == (engine, "True", "1200")
        assert float(value) == pytest.approx(total, rel=1e-3)


def test_rows_say_which_attributes_are_run_time_inputs():
    seeded = {name for name, row in TABLE.items() if row.run_time}
    assert seeded == {"rand", "randn", "randint", "randperm", "bernoulli", "dropout", "dropout_mask"}
    for name in seeded:
        assert all(is_run_time(attribute, 7) for attribute in TABLE[name].run_time)
    numbers = {name: row.compiled_numbers for name, row in TABLE.items() if row.compiled_numbers}
    assert {name for name, found in numbers.items() if found == ("scalar",)} == {
        name for name, row in TABLE.items() if row.kind == "BinaryOp" and name != "pow"
    }
    assert numbers["adaptive_step"] == ("rate", "shrink", "correction", "eps")
    assert alike({"p": 0.5, "seed": 1}, {"p": 0.25, "seed": 2})
    assert not alike({"dim": 1}, {"dim": 2})


def test_rows_say_which_ops_are_views():
    views = {name for name, row in TABLE.items() if row.view}
    assert views == {"getitem", "reshape", "transpose", "permute", "expand"}
    assert {name for name in views if TABLE[name].put_back is None} == {"expand"}


class CountingEngine(NumpyEngine):
    """NumPy, and a count of what it computes."""

    name = "counting"
    computed = 0

    def run(self, op: str, inputs: Any, attrs: Any) -> Any:
        CountingEngine.computed += 1
        return super().run(op, inputs, attrs)


def test_an_engine_is_a_class_and_a_line(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ValueError, match="no engine is called 'counting'; there are jax, numpy, pytorch"):
        gt.init(engine="counting")
    monkeypatch.setitem(ENGINES, "counting", EngineEntry(f"{__name__}:CountingEngine", "array", "numpy"))
    gt.init(engine="counting")
    x = gt.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    before = CountingEngine.computed
    loss = (x @ x).softmax(0).mean(1).exp().sum()
    loss.backward()
    assert x.grad is not None
    assert x.grad.shape == (2, 2)
    assert loss.item() == pytest.approx(2 * np.e**0.5, rel=0.2)
    assert CountingEngine.computed - before > 5
