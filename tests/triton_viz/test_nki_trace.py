"""Tracing NKI kernels: grids, decorators, arguments, errors, and stand-in modules."""

import dataclasses
import sys
from typing import Any

import numpy as np
import pytest
import torch

import tests.triton_viz.nki_kernels  # noqa: F401 - makes nki importable
import triton_viz
from examples import nki_rms_norm
from tests.triton_viz.helpers.nki_launches import double, last, of, ones, traced
from tests.triton_viz.nki_kernels import classic, modern
from triton_viz.clients import Profiler, Sanitizer
from triton_viz.clients.profiler.kernel_profile import Advice, KernelProfile, SiteProfile
from triton_viz.core.data import (
    Issue,
    Load,
    SbufEvent,
    Store,
)
from triton_viz.core.trace import NKITrace
from triton_viz.dsls.nki import NeuronProfile, isa, language
from triton_viz.errors import KernelError, SanitizerError, UnsupportedError

pytestmark = pytest.mark.usefixtures("no_launches")
nl: Any = language
nisa: Any = isa


def test_a_plain_function_and_a_jitted_one_run_with_and_without_a_grid():
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    for kernel in (traced(double), traced(classic.nki.jit(double)), traced(modern.nki.jit(double))):
        assert isinstance(kernel, NKITrace)
        np.testing.assert_array_equal(kernel(x), x * 2)
        np.testing.assert_array_equal(kernel[1](x), x * 2)
        np.testing.assert_array_equal(kernel[(1, 1)](x), x * 2)
    assert [launch.grid for launch in triton_viz.launches] == [(1, 1, 1)] * 9


def test_an_untraced_kernel_runs_and_leaves_nothing():
    np.testing.assert_array_equal(modern.nki.jit(double)[2](ones(4, 3)), 2 * ones(4, 3))
    np.testing.assert_array_equal(modern.nki.simulate(double)(ones(2, 3)), 2 * ones(2, 3))
    np.testing.assert_array_equal(classic.nki.simulate_kernel(double, ones(2, 3)), 2 * ones(2, 3))
    assert not triton_viz.launches


def test_programs_of_a_grid_share_tensors_in_shared_hbm():
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    np.testing.assert_array_equal(traced(double)[3](x), x * 2)
    (load,) = of(Load)
    assert load.programs.count == 3
    for program in last().programs():
        mine = load.at(program)
        np.testing.assert_array_equal(mine.offsets.reshape(-1), np.arange(8) + program[0] * 8)


def test_a_grid_has_axes_and_sizes_of_cores():
    def where(out):
        place = nl.program_id(0) * nl.num_programs(1) + nl.program_id(1)
        tile = nl.full((1, 1), float(place), dtype=nl.float32)
        nl.store(out[nl.ds(place, 1), :], tile)
        assert (nl.program_ndim(), nl.num_programs()) == (2, 6)

    out = np.zeros((6, 1), np.float32)
    traced(where)[nl.nc(2), nl.spmd_dim(3, 1)](out)
    np.testing.assert_array_equal(out[:, 0], np.arange(6))


def test_in_a_with_every_kernel_is_traced():
    with triton_viz.trace("tracer", backend="nki"):
        modern.softmax(ones(4, 4))
        classic.softmax(ones(4, 4))
    modern.softmax(ones(4, 4))
    assert [launch.kernel for launch in triton_viz.launches] == ["softmax", "softmax"]


def test_a_with_adds_its_clients_to_a_kernel_that_is_traced_anyway():
    kernel = traced(double)
    with triton_viz.trace(Profiler(), backend="nki"), triton_viz.trace("race_detector", backend="triton"):
        np.testing.assert_array_equal(kernel[1](ones(2, 3)), 2 * ones(2, 3))
        np.testing.assert_array_equal(kernel.run(ones(2, 3), grid=(1,)), 2 * ones(2, 3))
    kernel(ones(2, 3))
    kinds = [{type(record) for record in launch.records} for launch in triton_viz.launches]
    assert KernelProfile in kinds[0]
    assert Load in kinds[0]
    assert kinds[0] == kinds[1]
    assert kinds[2] == kinds[0] - {KernelProfile, SiteProfile, Advice}


def reads_outside_and_fails(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out[nl.ds(0, 2), :], nl.load(x[nl.ds(1, 2), :]))
    if nl.program_id(0) == 1:
        raise LookupError("no such row")
    return out


def test_a_failed_launch_is_appended_with_its_records_if_a_client_found_an_issue():
    kernel = traced(reads_outside_and_fails, "tracer", "sanitizer")
    with pytest.raises(
        KernelError, match=r"kernel reads_outside_and_fails, program \(1, 0, 0\): LookupError"
    ):
        kernel[2](ones(2, 3))
    (launch,) = triton_viz.launches
    assert (launch.kernel, launch.grid) == ("reads_outside_and_fails", (2, 1, 1))
    assert [tensor.name for tensor in launch.tensors] == ["x", "out"]
    assert {type(r) for r in launch.records} >= {Issue, Load, Store, SbufEvent, NeuronProfile}
    assert of(Issue, launch)[0].tensor == "x"
    with pytest.raises(KernelError):
        traced(reads_outside_and_fails, "tracer")[2](ones(2, 3))
    assert len(triton_viz.launches) == 1, "as with Triton, a failure without a finding leaves nothing"


def test_a_sanitizer_that_aborts_leaves_its_launch():
    with pytest.raises(SanitizerError, match="out of bounds"):
        traced(reads_outside_and_fails, Sanitizer(abort_on_error=True))(ones(2, 3))
    (launch,) = triton_viz.launches
    assert of(Issue, launch)


def test_a_kernel_calls_functions_and_kernels():
    inner = modern.nki.jit(modern.load_tile)

    def outer(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        for i in range(2):
            nl.store(out[nl.ds(i * 2, 2), :], inner(x, i * 2, 0, 2, 3))
        return out

    np.testing.assert_array_equal(traced(outer)(ones(4, 3)), ones(4, 3))
    loads = of(Load)
    assert [[site.function for site in load.call_path] for load in loads] == [["outer", "load_tile"]] * 2
    assert [load.iterations[0][1] for load in loads] == [0, 1]


def test_arguments_may_be_torch_tensors_tuples_dicts_and_dataclasses():
    @dataclasses.dataclass
    class Weights:
        scale: Any
        name: str = "weights"

    def kernel(pair, named, weights, factor):
        out = nl.ndarray(pair[0].shape, dtype=pair[0].dtype, buffer=nl.shared_hbm)
        total = nl.load(pair[0]) + nl.load(pair[1]) + nl.load(named["x"])
        nl.store(out, total * nl.load(weights.scale) * float(factor))
        return out, {"same": pair[0]}

    a = torch.ones(2, 3)
    out, extra = traced(kernel)((a, a), {"x": torch.full((2, 3), 2.0)}, Weights(torch.full((2, 3), 3.0)), 2)
    assert torch.equal(out, torch.full((2, 3), 24.0))
    assert extra["same"] is a
    assert {"pair[0]", "pair[1]", "named['x']", "weights.scale", "out"} <= {t.name for t in last().tensors}


def test_a_tensor_that_is_an_argument_can_be_written_to():
    def fill(out, value=3.0):
        nl.store(out, nl.full(out.shape, value, dtype=nl.float32))

    for out in (np.zeros((4, 4), np.float32), torch.zeros(4, 4)):
        assert traced(fill)(out) is None
        assert (out == 3).all()


# --- errors ---


def test_an_error_names_kernel_program_and_line():
    def kernel(x):
        if nl.program_id(0) == 1:
            raise ValueError("no")

    with pytest.raises(
        KernelError, match=r"test_nki_trace.py:\d+: kernel kernel, program \(1, 0, 0\): ValueError: no"
    ):
        traced(kernel)[2](ones(1, 1))


def test_other_objects_than_kernels_are_refused():
    with pytest.raises(UnsupportedError, match="3 is no NKI kernel"):
        traced(3)
    with pytest.raises(UnsupportedError, match="no backend is called 'cuda': there are 'triton', 'nki'"):
        triton_viz.trace(backend="cuda")
    with pytest.raises(UnsupportedError, match="kernel double: missing a required argument: 'x'"):
        traced(double)()
    with pytest.raises(UnsupportedError, match="sizes are integers"):
        traced(double)["a"](ones(2, 2))


def test_a_tile_cannot_be_returned():
    with pytest.raises(KernelError, match="which is in SBUF: store it in a tensor in HBM"):
        traced(lambda x: nl.load(x))(ones(2, 2))


def test_another_target_has_other_limits(monkeypatch: pytest.MonkeyPatch):
    def kernel(x):
        tile = nl.zeros((128, 50 * 1024), dtype=nl.float32)
        nl.store(x, tile[:, 0:1])
        assert nisa.get_nc_version() >= nisa.nc_version.gen3
        return nisa.get_nc_version().name

    with pytest.raises(KernelError, match="SBUF has 196,608"):
        traced(kernel)(ones(128, 1))
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    assert traced(kernel)(ones(128, 1)) == "gen4"
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn9")
    with pytest.raises(UnsupportedError, match="'trn9', and triton_viz knows trn1"):
        traced(kernel)(ones(128, 1))


# --- stand-in modules ---


def test_the_example_runs_and_its_broken_form_says_where(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "argv", ["nki_rms_norm"])
    nki_rms_norm.main()
    assert "rms_norm on trn2:" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["nki_rms_norm", "--broken"])
    with pytest.raises(
        KernelError, match=r"rms_norm, program \(2, 0, 0\): x, a tensor of shape \(256, 512\)"
    ):
        nki_rms_norm.main()
