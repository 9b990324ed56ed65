"""Every aten op that has a sharding rule gives the CPU's results, with each input in every layout."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import gt.torch  # noqa: F401 - registers the device
from gt.client import session
from gt.ops import Spec
from gt.ops.sharding.aten import POINTWISE, RULES
from gt.stream.layouts import Layout, Sharded
from gt.torch.schemas import schema_of
from tests.gt.device.index_samples import INDEXING, Sample, floats, integers
from tests.gt.device.test_sharded_device import DEVICE
from tests.gt.helpers.spread import Servers
from tests.gt.test_sharded_layouts import InTurn, layouts

WORKERS = 3


class Told(Servers):
    """A server whose uploads have given placements."""

    def __init__(self) -> None:
        super().__init__("pytorch")
        self.policy = self.in_turn = InTurn()


@pytest.fixture(scope="module")
def servers() -> Iterator[Told]:
    servers = Told()
    yield servers
    servers.close()


_norm = torch.ops.aten.native_layer_norm
_group = torch.ops.aten.native_group_norm
_batch = torch.ops.aten._native_batch_norm_legit
_CONVOLUTION = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
_GROUPS = ([1, 1], [1, 1], [1, 1], False, [0, 0], 2)
_images = floats(4, 4, 5, 5)
_x, _weight, _bias = floats(5, 4, 6), floats(6), floats(6)
_mean, _inverse = _norm(_x, [6], _weight, _bias, 1e-5)[1:]
_pooled, _places = torch.ops.aten.max_pool2d_with_indices(_images, [2, 2])
_channels = floats(4)
_batch_mean, _batch_inverse = _batch.no_stats(_images, _channels, _channels, True, 0.1, 1e-5)[1:]
_group_mean, _group_inverse = _group(_images, _channels, _channels, 4, 4, 25, 2, 1e-5)[1:]
_scores, _targets = floats(5, 4).log_softmax(1), integers(4, 5)

_aten = torch.ops.aten
_attention = _aten._scaled_dot_product_flash_attention_for_cpu
_heads = (floats(4, 3, 5, 8), floats(4, 3, 5, 8), floats(4, 3, 5, 8))
_groups = (floats(2, 6, 5, 8), floats(2, 3, 5, 8), floats(2, 3, 5, 8))


def _with(name: str, *rest: Any) -> Callable[..., Any]:
    """An overload as a function of its tensors; the other arguments follow them."""
    return lambda *tensors: schema_of(f"aten::{name}").function(*tensors, *rest)


def _stepped(name: str, options: dict[str, Any]) -> Callable[..., Any]:
    """A step of a fused optimizer: what it makes of a parameter and its state."""

    def step(*tensors: torch.Tensor) -> Any:
        lists = [[one.clone()] for one in tensors]
        count = [torch.ones((), device=tensors[0].device)]
        states = {"_fused_sgd_": lists, "_fused_adagrad_": [*lists, count]}.get(name, [*lists, [], count])
        if name == "_fused_sgd_":
            options["is_first_step"] = False
        schema_of(f"aten::{name}").function(*states, lr=0.1, maximize=False, **options)
        return (lists[0][0], *[one[0] for one in lists[2:]])

    return step


SAMPLES: dict[str, list[Sample]] = {
    **{
        name: [(_stepped(name, more), (floats(5, 4), floats(5, 4).flip(0), *[floats(5, 4) * 0.1] * count))]
        for name, count, more in (
            (
                "_fused_adam_",
                2,
                {"beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-6, "amsgrad": False},
            ),
            (
                "_fused_adamw_",
                2,
                {"beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-6, "amsgrad": False},
            ),
            ("_fused_sgd_", 1, {"weight_decay": 0.1, "momentum": 0.9, "dampening": 0.0, "nesterov": True}),
            ("_fused_adagrad_", 1, {"lr_decay": 0.1, "weight_decay": 0.1, "eps": 1e-6}),
        )
    },
    "clone": [(_aten.clone, (floats(5, 4),))],
    "_to_copy": [
        (lambda x: x.to(torch.float64), (floats(5, 4),)),
        (lambda x: x.to(torch.complex64), (floats(5, 4),)),
    ],
    "addmm": [
        (_aten.addmm, (b, floats(5, 6), floats(6, 4))) for b in (floats(4), floats(5, 4), floats(5, 1))
    ],
    "baddbmm": [(_aten.baddbmm, (floats(3, 5, 4), floats(3, 5, 6), floats(3, 6, 4)))],
    "_scaled_dot_product_flash_attention_for_cpu": [
        (lambda q, k, v: _attention(q, k, v, is_causal=True), _heads),
        (lambda q, k, v, mask: _attention(q, k, v, attn_mask=mask), (*_heads, floats(4, 1, 5, 5))),
        (lambda q, k, v, mask: _attention(q, k, v, attn_mask=mask), (*_heads, floats(5, 5))),
        (lambda q, k, v: _attention(q, k, v), (*_heads[:1], floats(4, 1, 5, 8), floats(4, 1, 5, 8))),
        (lambda q, k, v: _attention(q, k, v), _groups),
        (lambda q, k, v, mask: _attention(q, k, v, attn_mask=mask), (*_groups, floats(2, 6, 5, 5))),
    ],
    "_scaled_dot_product_flash_attention_for_cpu_backward": [
        (
            lambda g, q, k, v, out, lse: _aten._scaled_dot_product_flash_attention_for_cpu_backward(
                g, q, k, v, out, lse, 0.0, True
            ),
            (floats(4, 3, 5, 8), *_heads, *_attention(*_heads, is_causal=True)),
        ),
        (
            lambda g, q, k, v, out, lse: _aten._scaled_dot_product_flash_attention_for_cpu_backward(
                g, q, k, v, out, lse, 0.0, False
            ),
            (floats(2, 6, 5, 8), *_groups, *_attention(*_groups)),
        ),
    ],
    "convolution": [
        (
            lambda x, w, b: _aten.convolution(x, w, b, *_CONVOLUTION),
            (_images, floats(5, 4, 3, 3), floats(5)),
        ),
        (lambda x, w: _aten.convolution(x, w, None, *_GROUPS), (_images, floats(6, 2, 3, 3))),
        (
            lambda x, w: _aten.convolution(x, w, None, *_CONVOLUTION[:3], True, [0, 0], 1),
            (_images, floats(4, 5, 3, 3)),
        ),
    ],
    "convolution_backward": [
        (
            lambda g, x, w: _aten.convolution_backward(g, x, w, [5], *_CONVOLUTION, [True, True, True]),
            (floats(4, 5, 5, 5), _images, floats(5, 4, 3, 3)),
        ),
        (
            lambda g, x, w: _aten.convolution_backward(g, x, w, None, *_CONVOLUTION, [False, True, False])[1],
            (floats(4, 5, 5, 5), _images, floats(5, 4, 3, 3)),
        ),
    ],
    "native_layer_norm": [(lambda x, w, b: _norm(x, [6], w, b, 1e-5), (_x, _weight, _bias))],
    "native_layer_norm_backward": [
        (
            lambda g, x, m, r, w, b: _aten.native_layer_norm_backward(g, x, [6], m, r, w, b, [True] * 3),
            (floats(5, 4, 6), _x, _mean, _inverse, _weight, _bias),
        )
    ],
    "native_group_norm": [
        (lambda x, w, b: _group(x, w, b, 4, 4, 25, 2, 1e-5), (_images, _channels, _channels.flip(0)))
    ],
    "native_group_norm_backward": [
        (
            lambda g, x, m, r, w: _aten.native_group_norm_backward(g, x, m, r, w, 4, 4, 25, 2, [True] * 3),
            (_images.flip(0), _images, _group_mean, _group_inverse, _channels),
        )
    ],
    "native_batch_norm": [
        (
            lambda x, w, b, m, v: _aten.native_batch_norm(x, w, b, m, v, False, 0.1, 1e-5)[0],
            (_images, _channels, _channels, _channels, _channels),
        )
    ],
    "_native_batch_norm_legit_functional": [
        (
            lambda x, w, b, m, v: _aten._native_batch_norm_legit_functional(x, w, b, m, v, True, 0.1, 1e-5),
            (_images, _channels, _channels.flip(0), _channels, _channels),
        )
    ],
    "_native_batch_norm_legit.no_stats": [
        (lambda x, w: _batch.no_stats(x, w, None, True, 0.1, 1e-5), (_images, _channels))
    ],
    "native_batch_norm_backward": [
        (
            lambda g, x, w, m, i: _aten.native_batch_norm_backward(
                g, x, w, None, None, m, i, True, 1e-5, [True, True, True]
            ),
            (_images.flip(0), _images, _channels, _batch_mean, _batch_inverse),
        )
    ],
    "max_pool2d_with_indices": [(lambda x: _aten.max_pool2d_with_indices(x, [2, 2]), (_images,))],
    "max_pool2d_with_indices_backward": [
        (
            lambda g, x, i: _aten.max_pool2d_with_indices_backward(
                g, x, [2, 2], [2, 2], [0, 0], [1, 1], False, i
            ),
            (_pooled, _images, _places),
        )
    ],
    "avg_pool2d": [(lambda x: _aten.avg_pool2d(x, [2, 2]), (_images,))],
    "avg_pool2d_backward": [
        (
            lambda g, x: _aten.avg_pool2d_backward(g, x, [2, 2], [2, 2], [0, 0], False, True, None),
            (_pooled, _images),
        )
    ],
    "_adaptive_avg_pool2d": [(lambda x: _aten._adaptive_avg_pool2d(x, [2, 2]), (_images,))],
    "_adaptive_avg_pool2d_backward": [(_aten._adaptive_avg_pool2d_backward, (_pooled, _images))],
    "adaptive_max_pool2d": [(lambda x: _aten.adaptive_max_pool2d(x, [2, 2]), (_images,))],
    "adaptive_max_pool2d_backward": [
        (
            _aten.adaptive_max_pool2d_backward,
            (_pooled, _images, _aten.adaptive_max_pool2d(_images, [2, 2])[1]),
        )
    ],
    "upsample_nearest2d": [(lambda x: _aten.upsample_nearest2d(x, [7, 7]), (_images,))],
    **{
        name: [(_with(name, [7] * (1 + ("2d" in name)), *more), (floats(4, 4, 5, *[5] * ("2d" in name)),))]
        for name, more in (
            *(("upsample_bilinear2d", (False,)), ("upsample_bicubic2d", (False,))),
            *(("upsample_linear1d", (False,)), ("upsample_nearest1d", ())),
        )
    },
    **{
        f"{name}_backward": [
            (
                _with(f"{name}_backward", [7] * n, [4, 3, *[5] * n], *more),
                (floats(4, 3, *[7] * n),),
            )
        ]
        for name, n, more in (
            *(("upsample_nearest1d", 1, ()), ("upsample_linear1d", 1, (False,))),
            *(("upsample_nearest2d", 2, ()), ("upsample_bilinear2d", 2, (False,))),
            *(("upsample_bicubic2d", 2, (False,)),),
        )
    },
    "pixel_shuffle": [(_with("pixel_shuffle", 2), (floats(3, 8, 2, 3),))],
    "pixel_unshuffle": [(_with("pixel_unshuffle", 2), (floats(3, 2, 4, 6),))],
    "reflection_pad2d": [(lambda x: _aten.reflection_pad2d(x, [1, 1, 2, 0]), (_images,))],
    "replication_pad2d": [(lambda x: _aten.replication_pad2d(x, [1, 1, 2, 0]), (_images,))],
    "nll_loss_forward": [
        (lambda x, t, r=r: _aten.nll_loss_forward(x, t, None, r, 2), (_scores, _targets)) for r in (0, 1, 2)
    ]
    + [(lambda x, t, w: _aten.nll_loss_forward(x, t, w, 1, -100), (_scores, _targets, floats(4)))],
    "nll_loss_backward": [
        (
            lambda g, x, t, w: _aten.nll_loss_backward(g, x, t, None, 1, 2, w),
            (floats(), _scores, _targets, torch.tensor(4.0)),
        ),
        (
            lambda g, x, t, w: _aten.nll_loss_backward(g, x, t, None, 0, 2, w),
            (floats(5), _scores, _targets, torch.tensor(0.0)),
        ),
    ],
    **{
        name: [(_with(name, *with_weight, r), (floats(5, 4), floats(5, 4).flip(0))) for r in (0, 1, 2)]
        for name in ("mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "soft_margin_loss")
        for with_weight in [(None,) if name == "binary_cross_entropy" else ()]
    },
    **{
        f"{name}_backward": [
            (
                _with(f"{name}_backward", *before, r, *more),
                (floats(5, 4) if r == 0 else floats(), floats(5, 4), floats(5, 4).flip(0)),
            )
            for r in (0, 1, 2)
        ]
        for name, more in (
            *(("mse_loss", ()), ("smooth_l1_loss", (1.0,)), ("huber_loss", (1.0,))),
            *(("binary_cross_entropy", ()), ("soft_margin_loss", ())),
        )
        for before in [(None,) if name == "binary_cross_entropy" else ()]
    },
    **{
        name: [(_with(name, 1, torch.float32), (floats(5, 4), floats(5, 4)))]
        for name in ("_softmax_backward_data", "_log_softmax_backward_data")
    },
    **{name: [(_with(name, 1, False), (floats(5, 4),))] for name in ("_softmax", "_log_softmax")},
    **{
        name: [(_with(name, 1), (floats(5, 4, 3),))]
        for name in (
            "_safe_softmax",
            "cumsum",
            "cumprod",
            "logcumsumexp",
            "mode",
            "cummax",
            "cummin",
            "argsort",
        )
    },
    **{
        name: [
            (
                _with(name, 1, k),
                (floats(5, 4, 3),),
            )
            for k in (False, True)
        ]
        for name in ("max.dim", "min.dim", "any.dim", "all.dim", "median.dim")
    },
    **{name: [(_with(name, 1), (floats(5, 4, 3),))] for name in ("argmax", "argmin")},
    **{name: [(_with(name, [1]), (floats(5, 4, 3),))] for name in ("amax", "amin", "logsumexp")},
    "sum.dim_IntList": [(lambda x: x.sum([0, 2], dtype=torch.float64), (floats(5, 4, 3),))],
    "mean.dim": [(lambda x: x.mean([1], dtype=torch.float64), (floats(5, 4, 3),))],
    "kthvalue": [(lambda x: _aten.kthvalue(x, 2, 1), (floats(5, 4, 3),))],
    "glu": [(lambda x: _aten.glu(x, 1), (floats(5, 4, 3),))],
    "linalg_vector_norm": [
        (lambda x, p=p, d=d: _aten.linalg_vector_norm(x, p, d), (floats(5, 4, 3),))
        for p in (2, 1, 3, float("inf"))
        for d in (None, [1])
    ],
    "prod.dim_int": [(lambda x: x.prod(1), (floats(5, 4, 3),))],
    "var.correction": [(lambda x: x.var(1), (floats(5, 4, 3),))],
    "std.correction": [(lambda x: x.std([0, 1]), (floats(5, 4, 3),))],
    "var_mean.correction": [(lambda x: torch.var_mean(x, 1), (floats(5, 4, 3),))],
    "sort": [(lambda x: x.sort(), (floats(5, 4),)), (lambda x: x.sort(0), (floats(5, 4),))],
    "sort.stable": [(lambda x: torch.sort(x, stable=True, dim=1), (floats(5, 4),))],
    "topk": [(lambda x: x.topk(2), (floats(5, 4),))],
    "constant_pad_nd": [(lambda x: _aten.constant_pad_nd(x, [0, 0, 1, 2], 3.0), (floats(5, 4, 3),))],
    "roll": [(lambda x: x.roll(1, 1), (floats(5, 4),)), (lambda x: x.roll(1), (floats(5, 4),))],
    "flip": [(lambda x: x.flip(1), (floats(5, 4),))],
    "slice_backward": [(lambda g: _aten.slice_backward(g, [5, 7], 1, 1, 7, 2), (floats(5, 3),))],
    "select_backward": [(lambda g: _aten.select_backward(g, [5, 3, 4], 1, 2), (floats(5, 4),))],
    **INDEXING,
}

KEYWORDS: dict[str, dict[str, Any]] = {
    "div.Tensor_mode": {"rounding_mode": "floor"},
    "div.Scalar_mode": {"rounding_mode": "floor"},
    "clamp": {"min": 0.3},
    "round.decimals": {"decimals": 1},
}
INTEGER_OPS = ("bitwise", "gcd", "lcm")


def _pointwise(name: str) -> Sample:
    """A call of an overload with tensors of one shape and numbers for everything else."""
    schema = schema_of(f"aten::{name}")
    of_integers = name.startswith(INTEGER_OPS)
    tensors: list[torch.Tensor] = []
    taken: set[str] = set()
    rest: dict[str, Any] = {}
    positional = [one for one in schema.function._schema.arguments if not one.kwarg_only]
    for one in positional:
        kind = str(one.type)
        if kind == "Tensor" or (name == "clamp.Tensor" and one.name == "min"):
            size = (4, 1, 5) if len(tensors) == 1 and "backward" not in name else (4, 3, 5)
            made = integers(7, *size) + 1 if of_integers else floats(*size) + 0.01 * len(tensors)
            taken.add(one.name)
            is_mask = one.name in ("mask", "condition")
            tensors.append(made > 0.5 if is_mask else floats() if name == "fill.Tensor" and tensors else made)
        elif not one.has_default_value():
            values: dict[str, Any] = {"bool": False, "int": 1, "str": "none"}
            rest[one.name] = values.get(kind, 2 if of_integers else 0.5)
    if name == "masked_fill.Tensor":
        tensors[2] = floats()
    rest |= KEYWORDS.get(name, {})

    def call(*given: torch.Tensor) -> Any:
        waiting = iter(given)
        arguments = [
            next(waiting) if one.name in taken else rest.get(one.name, one.default_value)
            for one in positional
        ]
        keywords = {key: value for key, value in rest.items() if key not in {one.name for one in positional}}
        return schema.function(*arguments, **keywords)

    return call, tuple(tensors)


def test_every_rule_has_a_sample():
    assert {name.removeprefix("aten::") for name in RULES} == {*SAMPLES, *POINTWISE}


def _combinations(tensors: tuple[torch.Tensor, ...]) -> Iterator[list[Layout]]:
    """Each layout of each input; those of the others differ every time."""
    every = [layouts(Spec(tuple(one.shape), str(one.dtype)[6:]), WORKERS) for one in tensors]
    for own, of_one in enumerate(every):
        for turn, layout in enumerate(of_one):
            yield [
                layout if number == own else others[(turn * 5 + number) % len(others)]
                for number, others in enumerate(every)
            ]
    most = max(len(one.shape) for one in tensors)
    for axis in range(most):  # all along one axis, as in a model: the rules' own way
        found = [
            next((at for at in of if isinstance(at, Sharded) and at.axis == axis), of[0]) for of in every
        ]
        yield found


def _check(servers: Told, samples: list[Sample], name: str) -> None:
    for call, tensors in samples:
        expected = call(*tensors)
        expected = [
            one for one in (expected if isinstance(expected, tuple) else (expected,)) if one is not None
        ]
        for number, chosen in enumerate(_combinations(tensors)):
            with servers.use(WORKERS, number):
                servers.in_turn.layouts = list(chosen)
                ours = [one.to(DEVICE) for one in tensors]
                session.current().flush()
                assert servers.in_turn.layouts == []
                found = call(*ours)
                found = [one for one in (found if isinstance(found, tuple) else (found,)) if one is not None]
                for mine, other in zip(found, expected, strict=True):
                    torch.testing.assert_close(
                        mine.cpu(),
                        other,
                        rtol=1e-4,
                        atol=1e-5,
                        equal_nan=True,
                        msg=lambda text, chosen=chosen: f"{name} of {list(map(str, chosen))}: {text}",
                    )


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_an_op_on_every_layout_of_each_input(servers: Told, name: str):
    _check(servers, SAMPLES[name], name)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if n % 8 == 0 else [pytest.mark.thorough])
        for n, name in enumerate(sorted(POINTWISE))
    ],
)
def test_an_elementwise_op_on_every_layout_of_each_input(servers: Told, name: str):
    _check(servers, [_pointwise(name)], name)
