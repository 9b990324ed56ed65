"""Host code of libraries around a launch, written for a GPU, runs unchanged without a GPU."""

from typing import Any, cast

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime import driver

import triton_viz


@triton.jit
def scale_rows(x, out, rows, columns, factor, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        mask = (at < columns) | EVEN
        tl.store(out + row * columns + at, tl.load(x + row * columns + at, mask=mask) * factor, mask=mask)


tuned = triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, num_warps=w, num_stages=2) for w in (2, 4)], key=["columns"]
)
even = triton.heuristics({"EVEN": lambda args: args["columns"] == args["BLOCK"]})


@pytest.mark.parametrize("columns", [64, 50])
@pytest.mark.parametrize("wrap", [lambda k: tuned(even(k)), lambda k: tuned(k)], ids=["both", "autotune"])
@pytest.mark.parametrize("rows", [5, 300])
def test_a_persistent_kernel_under_autotune_and_a_device_guard(rows, columns, wrap):
    kernel = wrap(scale_rows)
    extra = {} if kernel.fn is not scale_rows else {"EVEN": columns == 64}
    x = torch.randn(rows, columns)
    out = torch.full_like(x, torch.nan)
    with triton_viz.trace(()):
        sms = torch.cuda.get_device_properties(x.device).multi_processor_count
        active: Any = driver.active
        assert sms == active.utils.get_device_properties(0)["multiprocessor_count"]
        with torch.cuda.device(x.device):
            kernel[lambda meta: (min(sms, meta["rows"], meta["BLOCK"]),)](
                x, out, rows, columns, factor=0.5, **extra
            )
        torch.cuda.synchronize()
    torch.testing.assert_close(out, x * 0.5)


def test_a_kernel_that_a_block_size_heuristic_launches_alone():
    kernel = triton.heuristics(
        {"BLOCK": lambda args: triton.next_power_of_2(args["columns"]), "EVEN": lambda args: False}
    )(scale_rows)
    x = torch.randn(7, 33)
    out = torch.empty_like(x)
    with triton_viz.trace(()):
        kernel[(7,)](x, out, 7, 33, 2.0, num_warps=8)
    torch.testing.assert_close(out, x * 2)


def test_arguments_that_do_not_fit_are_refused_before_anything_runs():
    x, launch = torch.zeros(1, 4), cast(Any, scale_rows)[(1,)]
    with triton_viz.trace(()), pytest.raises(TypeError, match="kernel scale_rows has no argument 'BLOKC'"):
        launch(x, x, 1, 4, 2.0, BLOKC=4, EVEN=True)
    with triton_viz.trace(()), pytest.raises(TypeError, match="kernel scale_rows: the launch lacks argument"):
        launch(x, x, 1, 4, 2.0, BLOCK=4)
