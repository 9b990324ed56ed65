"""Stand-ins for NKI's packages, and a real installation, which is not changed."""

from pathlib import Path

import pytest

import tests.triton_viz.nki_kernels  # noqa: F401 - makes nki importable
from tests.programs import ROOT, run_python

pytestmark = pytest.mark.usefixtures("no_launches")

STANDS_IN = """
import sys, triton_viz
try:
    import nki
except ModuleNotFoundError:
    print("absent")
triton_viz.trace(backend="nki")  # asks for them
import nki.isa, nki.language as nl, neuronxcc.nki as classic
from neuronxcc.nki.language import load
from nki.typing import tensor
print(nl.tile_size.pmax, classic.language.load is load, nki.isa.nc_matmul is not classic.isa.nc_matmul)
from triton_viz.dsls.nki import uninstall
uninstall()
print("nki" in sys.modules)
"""


def test_stand_ins_are_there_when_asked_for_and_gone_again(tmp_path: Path):
    said = run_python("-c", STANDS_IN, cwd=tmp_path, environment={"PYTHONPATH": str(ROOT)}).stdout
    assert said.splitlines() == ["absent", "128 True True", "False"]


VENDORS = """
import nki, nki.language as nl
import triton_viz, triton_viz.dsls.nki
triton_viz.dsls.nki.install()
import numpy as np
from nki.language import load

def helper(x):
    return nl.exp(load(x))

@triton_viz.trace(backend="nki")
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(2):
        nl.store(out, helper(x))
    return out

print(np.allclose(kernel(np.ones((2, 2), np.float32)), np.e), nki.__file__.endswith("__init__.py"))
try:
    nl.load(1)
except RuntimeError as error:
    print(error)
import neuronxcc.nki
print(neuronxcc.nki.__doc__)
"""


def test_a_real_installation_is_neither_shadowed_nor_changed(tmp_path: Path):
    package = tmp_path / "nki"
    package.mkdir()
    (package / "__init__.py").write_text(
        "class Wrapped:\n    def __init__(self, func): self.func = func\n"
        "    def __call__(self, *args): raise RuntimeError('needs a Neuron device')\n"
        "def jit(func): return Wrapped(func)\n"
    )
    (package / "language.py").write_text(
        "def load(x): raise RuntimeError('the real one')\nexp = store = ndarray = load\n"
        "class MemoryRegion: pass\nshared_hbm = 'shared_hbm'\n"
    )
    said = run_python("-c", VENDORS, cwd=tmp_path, environment={"PYTHONPATH": f"{ROOT}:{tmp_path}"}).stdout
    assert said.splitlines() == ["True True", "the real one", "triton_viz's stand-in for neuronxcc.nki."]
