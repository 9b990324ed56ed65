"""Kernels with autotuning and heuristics: the choice of a config, and the binding of arguments."""

import logging
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from triton_viz.dsls.triton.wrappers import Call, bind, launch_options, unwrap
from triton_viz.errors import UnsupportedError


def scale(x, n, factor=2.0, BLOCK: "tl.constexpr" = 64, EVEN: "tl.constexpr" = False):  # type: ignore
    pass


def warps(x, num_warps: tl.constexpr, num_stages):
    pass


CONFIGS = [triton.Config({"BLOCK": 16}, num_warps=2), triton.Config({"BLOCK": 32}, num_warps=8)]
EVEN = {"EVEN": lambda args: args["n"] % args["BLOCK"] == 0}


def tuned(kernel: Any = None, configs: Any = CONFIGS, key: Any = ("n",), **more: Any) -> Any:
    return triton.autotune(configs, list(key), **more)(kernel or JITFunction(scale))


def call(kernel: Any, *args: Any, grid: Any = None, **kwargs: Any) -> Call:
    return unwrap(kernel).resolve(args, kwargs, grid)


@pytest.mark.parametrize("jit", [JITFunction, InterpretedFunction])
@pytest.mark.parametrize("outer", ["autotune", "heuristics"])
def test_a_kernel_is_found_inside_wrappers_in_any_order(jit, outer):
    if outer == "autotune":
        kernel = tuned(triton.heuristics(EVEN)(jit(scale)))
    else:
        kernel = triton.heuristics({"factor": lambda args: args["n"] / 2})(tuned(jit(scale)))
    found = unwrap(kernel)
    assert found.fn is scale
    assert len(found.wrappers) == 2
    result = call(kernel, "x", 32)
    assert result.arguments["BLOCK"] == 16
    if outer == "autotune":
        assert result.arguments["EVEN"] is True
    else:
        assert result.arguments["factor"] == 16.0


def test_a_plain_kernel_needs_no_unwrapping():
    found = unwrap(JITFunction(scale))
    assert found.wrappers == ()
    assert found.resolve(("x", 5), {}).arguments == {
        "x": "x",
        "n": 5,
        "factor": 2.0,
        "BLOCK": 64,
        "EVEN": False,
    }


def test_other_objects_than_kernels_are_refused_by_their_type():
    with pytest.raises(UnsupportedError, match="function is not a kernel"):
        unwrap(scale)


def test_options_are_kept_apart_from_the_arguments():
    result = call(tuned(), "x", 5, enable_fp_fusion=False)
    assert list(result.arguments) == ["x", "n", "factor", "BLOCK", "EVEN"]
    assert result.options == {"num_warps": 2, "num_ctas": 1, "num_stages": 3, "enable_fp_fusion": False}


def test_an_option_that_the_kernel_has_a_parameter_for_is_an_argument():
    expected = {"x": "x", "num_warps": 4, "num_stages": 2}
    assert bind(warps, ("x",), {"num_warps": 4, "num_stages": 2}) == expected
    assert bind(warps, ("x", 4, 2), {"num_ctas": 1}) == expected


def test_every_installed_backend_says_which_options_it_has():
    assert {"num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu"} <= launch_options()


def test_the_choice_among_configs_is_said_once_for_a_kernel(caplog):
    kernel = tuned()
    for n in (5, 6):
        call(kernel, "x", n)
    call(tuned(configs=CONFIGS[:1]), "x", 5)  # one config is no choice
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("triton_viz", logging.WARNING)
    assert record.getMessage().startswith(
        "kernel scale: no GPU to time its 2 autotune configs, so it runs with the first: BLOCK: 16"
    )


def test_libraries_find_the_config_where_triton_leaves_it():
    kernel = tuned()
    call(kernel, "x", 5)
    assert kernel.best_config is CONFIGS[0]


def test_a_config_that_triton_has_timed_is_taken():
    kernel = tuned()
    kernel.cache[(5,)] = CONFIGS[1]
    assert call(kernel, 0, 5).arguments["BLOCK"] == 32
    assert call(kernel, 0, 6).arguments["BLOCK"] == 16


def test_configs_are_pruned_with_the_arguments_by_name():
    def keep(configs, named, **kwargs):
        return [config for config in configs if config.kwargs["BLOCK"] >= named["n"] + kwargs["factor"]]

    kernel = tuned(prune_configs_by={"early_config_prune": keep})
    assert call(kernel, "x", 20, factor=1.0).arguments["BLOCK"] == 32
    assert call(kernel, "x", 10, factor=1.0).arguments["BLOCK"] == 16


def test_a_performance_model_ranks_the_configs():
    kernel = tuned(prune_configs_by={"perf_model": lambda BLOCK, **_: -BLOCK, "top_k": 1})
    assert call(kernel, "x", 5).arguments["BLOCK"] == 32


def test_a_performance_model_that_asks_a_gpu_is_left_out():
    def model(**_: Any) -> float:
        return torch.empty(1, device="cuda").item()

    kernel = tuned(prune_configs_by={"perf_model": model, "top_k": 1})
    assert call(kernel, "x", 5).arguments["BLOCK"] == 16
    assert kernel.perf_model is model


def test_errors_of_a_prune_function_reach_the_caller():
    def broken(configs, named, **kwargs):
        raise RuntimeError("cannot prune")

    with pytest.raises(RuntimeError, match="cannot prune"):
        call(tuned(prune_configs_by={"early_config_prune": broken}), "x", 5)


def test_the_hook_of_a_config_runs_with_everything_by_name_before_arguments_are_read():
    def hook(named):
        named["x"].append((named["n"], named["BLOCK"], named["num_warps"]))

    kernel = tuned(configs=[triton.Config({"BLOCK": 8}, pre_hook=hook)])
    seen: list[tuple] = []
    call(kernel, seen, 5)
    call(kernel, x=seen, n=6)
    assert seen == [(5, 8, 4), (6, 8, 4)]


def test_reset_to_zero_acts_once_per_tuning_key_as_after_timing():
    kernel = tuned(reset_to_zero=["x"])
    x = torch.ones(3)
    call(kernel, x, 5)
    assert x.tolist() == [0, 0, 0]
    x.fill_(1)
    call(kernel, x, 5)  # Triton times a key once, and later launches accumulate
    assert x.tolist() == [1, 1, 1]
    call(kernel, x, 6)
    assert x.tolist() == [0, 0, 0]


def test_restore_value_leaves_a_tensor_as_the_caller_gave_it():
    x = torch.ones(3)
    call(tuned(restore_value=["x"]), x, 5)
    assert x.tolist() == [1, 1, 1]


def test_a_heuristic_sees_the_grid_and_earlier_heuristics():
    kernel = triton.heuristics(
        {"BLOCK": lambda args: args["grid"][0] * 2, "EVEN": lambda args: args["BLOCK"] == 6}
    )(JITFunction(scale))
    result = call(kernel, "x", 5, grid=(3,))
    assert (result.arguments["BLOCK"], result.arguments["EVEN"]) == (6, True)
    assert result.options == {}


def test_a_heuristic_overrides_an_argument_of_the_launch():
    kernel = triton.heuristics({"BLOCK": lambda args: 2 * args["BLOCK"]})(JITFunction(scale))
    assert call(kernel, "x", 5, BLOCK=8).arguments["BLOCK"] == 16


def test_hooks_added_to_a_kernel_run():
    kernel, seen = JITFunction(scale), []
    kernel.add_pre_run_hook(lambda *args, **kwargs: seen.append((args, kwargs)))
    call(kernel, "x", 5, BLOCK=8)
    assert seen == [(("x", 5), {"BLOCK": 8})]


def test_the_launch_cannot_set_parameters_of_autotune():
    with pytest.raises(
        UnsupportedError, match="kernel scale: BLOCK is given at the launch, but it is autotune"
    ):
        call(tuned(), "x", 5, BLOCK=8)
    with pytest.raises(
        UnsupportedError, match="kernel scale: argument 'BLOCK' is given by position and again"
    ):
        call(tuned(), "x", 5, 1.0, 8)


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (("x",), {}, "kernel scale: the launch lacks argument 'n'"),
        ((), {"BLOCK": 1}, "kernel scale: the launch lacks argument 'x', 'n'"),
        (("x", 1), {"BLOK": 2}, "kernel scale has no argument 'BLOK': did you mean 'BLOCK'?"),
        (("x", 1), {"zzz": 2}, "kernel scale has no argument 'zzz': it takes x, n, factor, BLOCK, EVEN."),
        (("x", 1), {"n": 2}, "kernel scale: argument 'n' is given by position and again by name"),
        (tuple("abcdef"), {}, "kernel scale: it takes 5 arguments, and the launch gives 6 by position"),
    ],
)
def test_arguments_that_do_not_fit_are_named(args, kwargs, message):
    with pytest.raises(UnsupportedError) as caught:
        bind(scale, args, kwargs)
    assert str(caught.value) == message
    assert isinstance(caught.value, TypeError)
