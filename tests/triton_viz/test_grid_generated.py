"""The grid executor on generated kernels: all ways to run them give the same results."""

import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import Phase, given, settings

from tests.programs import run_python
from tests.triton_viz.corpus.case import tensors_of
from tests.triton_viz.corpus.checking import check_agreement, same_bits
from tests.triton_viz.corpus.generated import case_of, kernels
from tests.triton_viz.corpus.launching import difference, launch, launch_one_at_a_time

pytestmark = pytest.mark.usefixtures("no_launches")


@settings(max_examples=40)
@given(text=kernels())
def test_generated_kernels_do_the_same_at_once_and_one_at_a_time(text: str):
    with tempfile.TemporaryDirectory() as folder:
        case = case_of(text, Path(folder))
        (together, records), (alone, records_alone) = launch(case), launch_one_at_a_time(case)
        check_agreement(case, together, alone)
        assert not difference(records, records_alone)


def test_generated_kernels_compute_what_tritons_interpreter_computes(tmp_path: Path):
    texts: list[str] = []

    @settings(max_examples=25, phases=[Phase.generate], database=None)
    @given(text=kernels())
    def collect(text: str) -> None:
        texts.append(text)

    collect()
    ours = []
    for n, text in enumerate(texts):
        (tmp_path / str(n)).mkdir()
        ours.append(tensors_of(launch(case_of(text, tmp_path / str(n)))[0]))
    run_python(
        "-m", "tests.triton_viz.corpus.generated", str(tmp_path), environment={"TRITON_INTERPRET": "1"}
    )
    for n, (text, after) in enumerate(zip(texts, ours, strict=True)):
        theirs = torch.load(tmp_path / str(n) / "after.pt")
        for name, tensor in after.items():
            assert same_bits(tensor, theirs[name]), f"{name} differs after\n{text}"
