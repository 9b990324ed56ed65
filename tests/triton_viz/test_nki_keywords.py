"""Keywords of NKI's functions: each known keyword has an effect, unknown ones are errors."""

import inspect
from typing import Any

import numpy as np
import pytest

import tests.triton_viz.nki_kernels  # noqa: F401 - makes nki importable
import triton_viz
from triton_viz.dsls.nki import classic_isa, isa, language
from triton_viz.errors import UnsupportedError

pytestmark = pytest.mark.usefixtures("no_launches")

nl: Any = language
nisa: Any = classic_isa
X = np.random.default_rng(0).standard_normal((32, 16)).astype(np.float32)


def public(module: Any, prefix: str) -> list[Any]:
    """The functions that kernels call, without those that always raise."""
    ours = tuple(f"triton_viz.dsls.nki.{name}" for name in ("isa", "classic_isa", "language", "nki_loops"))
    return [
        pytest.param(f"{prefix}.{name}", function, id=f"{module.__name__.rpartition('.')[2]}.{name}")
        for name, function in sorted(vars(module).items())
        if inspect.isfunction(function) and not name.startswith("_") and function.__module__.startswith(ours)
        if name != "sendrecv"
    ]


FUNCTIONS = [*public(language, "nl"), *public(isa, "nisa"), *public(classic_isa, "nisa")]


def test_every_function_is_among_those():
    names = {param.values[0] for param in FUNCTIONS}
    assert len(FUNCTIONS) > 150
    assert {"nl.load", "nl.exp", "nl.ndarray", "nl.affine_range", "nisa.activation", "nisa.memset"} <= names


@pytest.mark.parametrize(("name", "function"), FUNCTIONS)
def test_an_unknown_keyword_is_a_type_error_that_names_the_function_and_its_keywords(
    name: str, function: Any
):
    parameters = inspect.signature(function).parameters.values()
    required = [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    given = {p.name: None for p in parameters if p.default is p.empty and p.kind is p.KEYWORD_ONLY}
    with pytest.raises(TypeError, match=rf"{name} has no keyword 'maks': it has ") as caught:
        function(*(None for _ in required), **given, maks=None)
    listed = str(caught.value).partition("it has ")[2].split(", ")
    assert {p.name for p in required} <= set(listed)
    assert isinstance(caught.value, UnsupportedError)


def misspelled(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x, maks=None)
    nl.store(out, tile)
    return out


def test_the_error_has_the_line_of_the_kernel():
    line = misspelled.__code__.co_firstlineno + 2
    with pytest.raises(
        TypeError, match=rf"test_nki_keywords\.py:{line}: kernel misspelled, program .*nl\.load has"
    ):
        triton_viz.trace(backend="nki")(misspelled)(X)


def negated_sum(x):
    out = nl.ndarray((32, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.ndarray((32, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar_reduce(
        data=nl.load(x), op0=np.add, operand0=1.0, reduce_op=np.add, reduce_res=total, reduce_res_negate=True
    )
    nl.store(out, total)
    return out


def masked_eight(x):
    out = nl.ndarray((32, 8), dtype=x.dtype, buffer=nl.shared_hbm)
    j = nl.arange(16)[None, :]
    nl.store(out, nisa.max8(src=nl.load(x), mask=(j < 12) & (nl.arange(32)[:, None] >= 0)))
    return out


def masked_replace(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    every = nl.arange(32)[:, None] >= 0
    largest = nisa.max8(src=tile)
    replaced = nisa.nc_match_replace8(
        data=tile, vals=largest, imm=0.0, mask=every & (nl.arange(16)[None, :] < 8)
    )
    tile[...] = replaced
    nl.store(out, tile)
    return out


def counted(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for step in nl.sequential_range(start=1, stop=6, step=2):
        tile[...] = nl.add(tile, float(step))
    nl.store(out, tile)
    return out


def replaced_by_hand() -> np.ndarray:
    found = X.copy()
    for row in found:
        for value in np.sort(row)[::-1][:8]:
            places = np.flatnonzero(row[:8] == value)
            if len(places):
                row[places[0]] = 0.0
    return found


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (negated_sum, -(X + 1).sum(axis=1, keepdims=True)),
        (masked_eight, -np.sort(-X[:, :12], axis=1)[:, :8]),
        (masked_replace, replaced_by_hand()),
        (counted, X + 9),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_keywords_have_their_effects(kernel: Any, expected: np.ndarray):
    found = triton_viz.trace((), backend="nki")(kernel)(X)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def masked_shuffle(x):
    tile = nl.load(x)
    nisa.nc_stream_shuffle(tile, tile, list(range(32)), mask=nl.arange(32)[:, None] < 4)
    return x


def test_a_mask_that_cannot_be_obeyed_is_refused():
    with pytest.raises(UnsupportedError, match=r"nisa\.nc_stream_shuffle with a mask"):
        triton_viz.trace(backend="nki")(masked_shuffle)(X)
