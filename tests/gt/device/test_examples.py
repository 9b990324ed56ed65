"""The examples of PyTorch programs: the device's curve is the CPU's."""

import ast
import re
from pathlib import Path

import pytest

from examples import torch_gpt
from tests.programs import run_python


def test_a_gpt_trains_to_the_cpus_curve(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--steps", "6", "--batch", "4", "--context", "16", "--width", "32"]
    losses = {
        device: torch_gpt.train(torch_gpt.parser().parse_args([*small, "--device", device]))
        for device in ("tapestry", "cpu")
    }
    assert losses["tapestry"] == pytest.approx(losses["cpu"], rel=1e-4)
    assert losses["tapestry"][-1] < losses["tapestry"][0]
    said = capsys.readouterr().out.splitlines()
    assert "on tapestry:0" in said[0]
    assert said[1 : len(said) // 2] == said[len(said) // 2 + 1 :], "the same losses and the same text"


def test_a_script_for_the_device_differs_from_one_for_cuda_in_the_import_and_the_name() -> None:
    """Nothing else of gt is in it."""
    tree = ast.parse(Path(torch_gpt.__file__).read_text())
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imported if "gt" in ast.unparse(node)] == ["import gt.torch"]
    assert not any(isinstance(node, ast.Name) and node.id == "gt" for node in ast.walk(tree))


def test_a_trainer_of_hugging_face_fine_tunes_on_the_device() -> None:
    pytest.importorskip("accelerate")
    program = """
from examples.torch_finetune import parser, train
from accelerate.state import AcceleratorState
for device in ("tapestry", "cpu"):
    options = parser().parse_args(["--device", device, "--steps", "4", "--layers", "1", "--every", "2"])
    print("losses", train(options)[0])
    AcceleratorState._reset_state(reset_partial_state=True)
"""
    said = run_python("-c", program).stdout
    ours, theirs = (ast.literal_eval(one) for one in re.findall(r"^losses (.*)$", said, re.MULTILINE))
    assert re.findall(r"^accuracy .* on (\w+)", said, re.MULTILINE) == ["tapestry", "cpu"]
    assert len(ours) == 2
    assert ours == pytest.approx(theirs, rel=1e-3)
