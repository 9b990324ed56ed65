"""Warm-up: a client receives the result of Triton's compiler, for a GPU that need not be present."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.runtime.interpreter import InterpretedFunction

import triton_viz
from tests.programs import ROOT, run_python
from tests.triton_viz.helpers import kernels
from triton_viz.clients import Tracer
from triton_viz.core.config import Config
from triton_viz.dsls.triton.compiler.compile import Compiled, compile_launch, parse_target
from triton_viz.dsls.triton.wrappers import unwrap
from triton_viz.errors import KernelError, TritonVizError, UnsupportedError

pytestmark = pytest.mark.usefixtures("no_launches")

HALF = tl.constexpr(0.5)


class Asm(Tracer):
    """A tracer that also receives the kernel's ASM."""

    NAME = "asm"

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Any, Compiled | TritonVizError]] = []

    def pre_warmup_callback(self, jit_fn) -> bool:
        return True

    def post_warmup_callback(self, jit_fn, compiled):
        self.seen.append((jit_fn, compiled))

    @property
    def compiled(self) -> Compiled:
        _, compiled = self.seen[-1]
        assert isinstance(compiled, Compiled), compiled
        return compiled


def compiled_add(n: int = 64, offset: int = 0, target: str = "cuda:90", **options: Any) -> Compiled:
    x = torch.ones(n + offset)[offset:]
    call = unwrap(kernels.add).resolve((x, x, x, n), {"BLOCK": 64, **options})
    return compile_launch(kernels.add, call, target)


def test_a_client_that_asks_gets_the_asm_of_its_launch():
    client = Asm()
    x, out = torch.arange(64.0), torch.zeros(64)
    triton_viz.trace(client)(kernels.add)[(1,)](x, x, out, 64, BLOCK=64)
    assert out.tolist() == (x * 2).tolist()
    ((jit_fn, _),) = client.seen
    assert jit_fn is kernels.add
    compiled = client.compiled
    assert set(compiled.asm) == {"ttir", "ttgir", "llir", "ptx"}
    assert ".target sm_90" in compiled.asm["ptx"]
    assert "tt.store" in compiled.asm["ttir"]
    assert "kernels.py" in compiled.asm["ptx"], "lines lead back to the source"
    assert (compiled.target, compiled.shared, compiled.spills) == ("cuda:90", 0, 0)
    assert compiled.registers is not None
    assert 8 <= compiled.registers <= 64
    assert len(triton_viz.launches[-1].records) == 3


def test_a_client_without_warm_up_receives_no_compiled_kernel():
    class Other(Asm):
        NAME = "other"

        def pre_warmup_callback(self, jit_fn) -> bool:
            return False

    asking, other = Asm(), Other()
    x = torch.ones(64)
    triton_viz.trace([asking, other])(kernels.add)[(1,)](x, x, x, 64, BLOCK=64)
    assert (len(asking.seen), len(other.seen)) == (1, 0)


def test_kernels_of_a_library_are_compiled_too():
    client = Asm()
    x = torch.ones(64)
    with triton_viz.trace(client):
        kernels.add[(1,)](x, x, x, 64, 64)  # type: ignore[arg-type] - a constexpr is given as a number
    assert "tt.store" in client.compiled.asm["ttir"]


def test_arguments_are_specialized_as_triton_does():
    text = compiled_add(n=64).asm["ttir"]
    assert text.count("tt.divisibility = 16") == 4, "three aligned pointers, and 64"
    assert compiled_add(n=65).asm["ttir"].count("tt.divisibility = 16") == 3
    assert compiled_add(n=64, offset=1).asm["ttir"].count("tt.divisibility = 16") == 1
    assert "%n" not in compiled_add(n=1).asm["ttir"].partition("loc(")[0], "a one is a constant"


def test_options_of_the_launch_reach_the_compiler():
    assert '"ttg.num-warps" = 2 : i32' in compiled_add(num_warps=2).asm["ttgir"]
    assert '"ttg.num-warps" = 8 : i32' in compiled_add(num_warps=8).asm["ttgir"]
    compiled_add(num_warps=2, waves_per_eu=1)  # of another backend's compiler


def test_the_target_may_be_another(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(triton_viz.config, "target", "hip:gfx942")
    client = Asm()
    x = torch.ones(64)
    triton_viz.trace(client)(kernels.add)[(1,)](x, x, x, 64, BLOCK=64)
    assert "gfx942" in client.compiled.asm["amdgcn"]
    assert client.compiled.registers
    assert client.compiled.spills == 0
    assert ".target sm_80" in compiled_add(target="cuda:80").asm["ptx"]
    assert parse_target("hip:gfx1100").warp_size == 32


@pytest.mark.parametrize("target", ["cuda", "cuda:hopper", "hip:90", "tpu:5", ""])
def test_a_target_that_is_none_says_which_are(target):
    with pytest.raises(UnsupportedError, match=r"no target is called .*cuda:90 and hip:gfx942"):
        compiled_add(target=target)


def test_the_environment_names_the_target(monkeypatch: pytest.MonkeyPatch):
    assert Config.from_environment().target == "cuda:90"
    monkeypatch.setenv("TRITON_VIZ_TARGET", "hip:gfx90a")
    assert Config.from_environment().target == "hip:gfx90a"


@triton.jit
def uses_much(x, out, SIDE: tl.constexpr, scale=HALF):
    at = tl.arange(0, SIDE)
    tile = tl.load(x + at[:, None] * SIDE + at[None, :])
    tile = tl.dot(tile, kernels.square(tile)) * HALF
    tl.store(out + at, libdevice.tanh(tl.sum(tile, axis=1)) + scale)


def test_functions_constants_and_modules_that_a_kernel_uses_are_compiled_with_it():
    x = torch.rand(16, 16).half()
    client = Asm()
    triton_viz.trace(client)(uses_much)[(1,)](x, torch.zeros(16), SIDE=16)
    assert "tt.dot" in client.compiled.asm["ttir"]
    assert "tt.reduce" in client.compiled.asm["ttir"]
    assert client.compiled.shared > 0


def test_a_traced_kernel_that_another_calls_is_compiled_with_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kernels, "square", triton_viz.trace()(kernels.square))
    client = Asm()
    triton_viz.trace(client)(kernels.row_norm)[(2,)](torch.ones(2, 4), torch.zeros(2), 4, BLOCK=4)
    assert "tt.reduce" in client.compiled.asm["ttir"]


def test_an_autotuned_kernel_is_compiled_with_the_config_that_is_taken():
    configs = [triton.Config({"BLOCK": 32}, num_warps=2), triton.Config({"BLOCK": 64}, num_warps=8)]
    client = Asm()
    x = torch.ones(64)
    triton_viz.trace(client)(triton.autotune(configs, ["n"])(kernels.add))[(2,)](x, x, x, 64)
    assert '"ttg.num-warps" = 2 : i32' in client.compiled.asm["ttgir"]
    assert "tensor<32xf32>" in client.compiled.asm["ttir"]


@triton.jit
def only_on_a_cpu(x, out):
    kind = tl.load(x)
    if kind > 0:
        value = kind
    else:
        value = tl.arange(0, 4)  # the compiler wants one type
    tl.store(out, tl.sum(value + tl.zeros([4], tl.int32), axis=0))


def test_a_kernel_that_does_not_compile_still_runs_and_the_client_gets_the_error():
    client = Asm()
    out = torch.zeros(1, dtype=torch.int32)
    triton_viz.trace(client)(only_on_a_cpu)[(1,)](torch.full((1,), 5, dtype=torch.int32), out)
    assert out.tolist() == [20]
    ((_, error),) = client.seen
    assert isinstance(error, KernelError)
    first = only_on_a_cpu.fn.__code__.co_firstlineno
    assert f"test_warmup.py:{first}: kernel only_on_a_cpu does not compile for cuda:90: " in str(error)
    assert "value" in str(error)


def test_objects_that_cannot_be_sent_to_the_compiler_are_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tests.triton_viz.test_warmup.HALF", (n for n in range(3)))
    call = unwrap(uses_much).resolve((torch.ones(16, 16), torch.zeros(16)), {"SIDE": 16})
    with pytest.raises(UnsupportedError, match=r"kernel uses_much .*'HALF', which uses_much uses, cannot be"):
        compile_launch(uses_much, call, "cuda:90")


def test_warmup_called_by_hand_gives_the_asm_and_launches_nothing():
    x = torch.ones(64)
    compiled = triton_viz.trace()(kernels.add).warmup(x, x, x, 64, BLOCK=64, grid=(1,))
    assert ".target sm_90" in compiled.asm["ptx"]
    assert triton_viz.launches == []
    assert x.tolist() == [1.0] * 64


def test_an_interpreted_kernel_compiles_as_the_jit_function_would():
    x = torch.ones(64)
    interpreted = InterpretedFunction(kernels.add.fn)
    call = unwrap(interpreted).resolve((x, x, x, 64), {"BLOCK": 64})
    assert compile_launch(interpreted, call, "cuda:90").asm["ptx"] == compiled_add().asm["ptx"]


PROGRAM = """
import triton_viz
from tests.triton_viz.test_warmup import kernels, digest_of_uses_much
print(type(kernels.add).__name__, digest_of_uses_much())
"""


def digest_of_uses_much() -> str:
    client = Asm()
    triton_viz.trace(client)(uses_much)[(1,)](torch.ones(16, 16).half(), torch.zeros(16), SIDE=16)
    return hashlib.sha256(client.compiled.asm["ptx"].encode()).hexdigest()


def test_interpret_mode_changes_nothing():
    kind, digest = run_python("-c", PROGRAM, environment={"TRITON_INTERPRET": "1"}).stdout.split()
    assert (kind, digest) == ("InterpretedFunction", digest_of_uses_much())


def test_a_kernel_of_the_script_itself_is_sent_without_running_the_script_again(tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(
        "import torch, triton, triton.language as tl, triton_viz\n"
        "from tests.triton_viz.test_warmup import Asm\n"
        "print('runs')\n"
        "client = Asm()\n\n"
        "@triton.jit\n"
        "def twice(x): return x + x\n\n"
        "@triton_viz.trace(client)\n"
        "@triton.jit\n"
        "def kernel(x): tl.store(x, twice(tl.load(x)))\n\n"
        "x = torch.ones(1)\n"
        "kernel[(1,)](x)\n"
        "print(x.item(), '.target sm_90' in client.compiled.asm['ptx'])\n"
    )
    environment = {"PYTHONPATH": str(ROOT), "TRITON_INTERPRET": "1"}
    assert run_python(str(script), environment=environment).stdout == "runs\n2.0 True\n"


def test_a_kernel_whose_file_has_changed_is_compiled_as_it_was_imported(tmp_path: Path):
    (tmp_path / "changing.py").write_text(
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef one(x):\n    tl.store(x, 1)\n"
    )
    code = (
        "import torch, triton_viz, changing\n"
        "from pathlib import Path\n"
        "Path('changing.py').write_text('# now it is a poem\\n' * 3)\n"
        "from tests.triton_viz.test_warmup import Asm\n"
        "client, x = Asm(), torch.zeros(1)\n"
        "triton_viz.trace(client)(changing.one)[(1,)](x)\n"
        "print(x.item(), client.compiled.asm['ttir'].count('tt.store'))\n"
    )
    printed = run_python("-c", code, cwd=tmp_path, environment={"PYTHONPATH": f"{ROOT}:{tmp_path}"}).stdout
    assert printed == "1.0 1\n"
