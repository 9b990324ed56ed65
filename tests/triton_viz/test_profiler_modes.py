"""The profiler gives the same numbers in all modes of execution, and those of the tracer."""

from typing import Any

import msgspec
import pytest
import torch
import triton
import triton.language as tl

import triton_viz
from tests.thorough import some
from tests.triton_viz import corpus
from tests.triton_viz.corpus.case import Case, launched_with
from tests.triton_viz.corpus.features import OLD_NAMES_ARE_FINE
from tests.triton_viz.helpers.profiled_kernels import (
    add,
    gather,
    histogram,
    matmul,
    means,
    odd_programs,
    softmax,
    softmax_in_passes,
    triangle,
    windows,
)
from tests.triton_viz.helpers.profiling import profiled
from triton_viz.clients import Profiler, Tracer
from triton_viz.clients.profiler.kernel_profile import KernelReport, SiteTraffic
from triton_viz.core.config import cfg
from triton_viz.errors import KernelError

pytestmark = pytest.mark.usefixtures("no_launches")


CASES: dict[str, tuple[Any, tuple[int, ...], tuple[Any, ...], dict[str, Any]]] = {
    "add": (add, (5,), (torch.randn(300), torch.randn(300), torch.empty(300), 300), {"BLOCK": 64}),
    "softmax": (softmax, (7,), (torch.randn(7, 77), torch.empty(7, 77), 77), {"BLOCK": 128}),
    "passes": (softmax_in_passes, (3,), (torch.randn(3, 128), torch.empty(3, 128), 128), {"BLOCK": 32}),
    "matmul": (
        matmul,
        (2, 3),
        (torch.randn(32, 64), torch.randn(64, 48), torch.empty(32, 48), 32, 48, 64),
        {"TILE": 16},
    ),
    "histogram": (histogram, (4,), (torch.arange(200) % 7, torch.zeros(7).int(), 200), {"BLOCK": 64}),
    "triangle": (triangle, (6,), (torch.randn(6, 16), torch.empty(6, 16)), {"BLOCK": 16}),
    "windows": (windows, (5,), (torch.randn(6 * 32), torch.empty(5 * 32)), {"BLOCK": 32}),
    "odd": (odd_programs, (5,), (torch.randn(80), torch.zeros(80)), {"BLOCK": 16}),
    "gather": (
        gather,
        (3,),
        (torch.randn(90), torch.randint(0, 90, (90,)), torch.empty(90), 90),
        {"BLOCK": 32},
    ),
    "means": (means, (1,), (torch.randn(64), torch.empty(1)), {"BLOCK": 64}),
}


@pytest.mark.parametrize("setting", [("vectorized", False), ("num_sms", 3)], ids=["one by one", "threads"])
@pytest.mark.parametrize("case", CASES)
def test_modes_agree_on_every_number(case: str, setting: tuple[str, Any], monkeypatch: pytest.MonkeyPatch):
    kernel, grid, args, constants = CASES[case]
    together = profiled(kernel, grid, *args, **constants)
    monkeypatch.setattr(cfg, *setting)
    assert profiled(kernel, grid, *args, **constants) == together


@OLD_NAMES_ARE_FINE
@pytest.mark.parametrize(
    "case", some([case for case in corpus.CASES if case.runs], 6), ids=lambda case: case.name
)
def test_modes_agree_on_kernels_of_the_corpus(case: Case, monkeypatch: pytest.MonkeyPatch):
    def once() -> list[KernelReport]:
        profiler, arguments = Profiler(), case.fresh()
        triton_viz.trace(profiler)(case.kernel)[case.grid](**launched_with(arguments))
        # A value that is constant in one program only is computed by Python there, and not counted.
        return [msgspec.structs.replace(one, integer_ops=0) for one in profiler.report().launches]

    together = once()
    monkeypatch.setattr(cfg, "vectorized", False)
    assert once() == together


@pytest.mark.parametrize("case", CASES)
def test_numbers_are_those_of_the_tracer_element_by_element(case: str):
    kernel, grid, args, constants = CASES[case]
    report = profiled(kernel, grid, *args, **constants)
    triton_viz.trace(Tracer())(kernel)[grid](*args, **constants)
    launch = triton_viz.launches[-1]
    for traffic in report.sites:
        touched: dict[Any, list[int]] = {}
        masked = sectors = 0
        for program in launch.programs():
            for op in launch.at(program):
                if op.call_path != traffic.site or type(op).__name__.lower() != traffic.kind:
                    continue
                mask, offsets = op.mask.reshape(-1), op.offsets.reshape(-1)  # type: ignore[attr-defined]
                if op.tensor not in (traffic.tensor, ""):  # type: ignore[attr-defined]
                    continue
                masked += int((~mask).sum())
                touched.setdefault(program, []).extend(offsets[mask].tolist())
                if len(traffic.block) == 1:
                    for begin in range(0, len(mask), 32):
                        own = offsets[begin : begin + 32][mask[begin : begin + 32]]
                        sectors += len({int(o) * traffic_width(traffic) // 32 for o in own})
        width = traffic_width(traffic)
        assert traffic.elements == sum(map(len, touched.values()))
        assert traffic.masked_off == masked
        assert traffic.distinct_in_programs == sum(len(set(one)) for one in touched.values()) * width
        assert traffic.distinct_bytes == len({o for one in touched.values() for o in one}) * width
        if len(traffic.block) == 1:
            assert traffic.sectors == sectors


def traffic_width(traffic: SiteTraffic) -> int:
    return {"float32": 4, "int64": 8, "int32": 4}[traffic.dtype]


@triton.jit
def fails_in_the_end(x, out):
    at = tl.program_id(0)
    tl.store(out + at, tl.load(x + at))
    tl.device_assert(at < 6, "too many programs")


@pytest.mark.parametrize("vectorized", [True, False])
def test_a_launch_that_fails_is_the_kernels_error_and_not_the_profilers(
    vectorized: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(cfg, "vectorized", vectorized)
    profiler = Profiler()
    with pytest.raises(KernelError, match=r"program \(6, 0, 0\): .*too many programs"):
        profiled(fails_in_the_end, (8,), torch.zeros(8), torch.zeros(8), profiler=profiler)
    assert profiler.finalize()
