"""Where PyTorch refuses a call, so do we: at once, with the same kind of error, and in the same words."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

import gt
from gt.errors import GTError
from tests.gt.samples.libraries import F, lib

MISTAKES: dict[str, list[Callable[[Any], Any]]] = {
    "shape": [
        lambda z: z(2, 3).permute(0),
        lambda z: z(2, 3).permute(0, 0),
        lambda z: z(2, 3).permute(0, 2),
        lambda z: z(2, 3, 4).t(),
        lambda z: z(3).mT,
        lambda z: z(2, 3).squeeze(5),
        lambda z: z(2, 3).squeeze((0, 0)),
        lambda z: z(2, 3).unsqueeze(4),
        lambda z: z(2, 3).unflatten(1, (2, 2)),
        lambda z: z(2, 3).flatten(1, 0),
        lambda z: z(2, 3).view(4, -1),
        lambda z: z(0, 3).reshape(0, -1),
        lambda z: z(2, 3).split(0),
        lambda z: z(2, 3).split(-1),
        lambda z: z(2, 3).split([1, 2]),
        lambda z: z(2, 3).chunk(0),
        lambda z: z(2, 3).flip(0, 0),
        lambda z: z(2, 3).roll((1, 2), 0),
        lambda z: z(2, 3).narrow(0, 1, 5),
        lambda z: z(2, 3).narrow(0, 3, 0),
        lambda z: z(2, 3).select(0, 2),
        lambda z: z(2, 3).repeat(2),
        lambda z: z(2, 3).repeat_interleave(-1),
        lambda z: z(2, 3).movedim((0, 1), (0, 0)),
        lambda z: z(2, 3).swapaxes(0, 3),
        lambda z: z(2, 3).expand_as(z(4, 5)),
        lambda z: z(3).tril(),
        lambda z: z(3).diagonal(),
        lambda z: lib(z(1)).cat([z(2, 3), z(2, 4)]),
        lambda z: lib(z(1)).cat([]),
        lambda z: lib(z(1)).cat([z(()), z(())]),
        lambda z: lib(z(1)).cat([z(2), z(2, 2)]),
        lambda z: lib(z(1)).cat([z(2), z(2)], dim=1),
        lambda z: lib(z(1)).stack([z(2), z(3)]),
        lambda z: lib(z(1)).stack([]),
        lambda z: F(z(1)).pad(z(2), (1, 1, 1, 1)),
        lambda z: F(z(1)).pad(z(2), (1,)),
    ],
    "index": [
        lambda z: z(3)[5],
        lambda z: z(3)[-4],
        lambda z: z(2, 3)[:, 3],
        lambda z: z(3)[0, 0],
        lambda z: z(3)[::-1],
        lambda z: z(3)[::0],
        lambda z: z(3)[1.5],
        lambda z: z(3)[z(1)],
        lambda z: z(3)[[5]],
        lambda z: z(())[0],
        lambda z: z(3, 3)[[0, 1], [0, 1, 2]],
        lambda z: z(3)[[True, False]],
        lambda z: z(3)[z(3, 1) > 0],
        lambda z: z(3).__setitem__(slice(0, 2), z(3)),
        lambda z: z(3).__setitem__([0, 1], z(3)),
        lambda z: z(3).__setitem__(0, z(2)),
        lambda z: z(3).__setitem__(3, 1),
        lambda z: iter(z(())),
        lambda z: len(z(())),
        lambda z: z(3, 2).gather(0, z(4, 3).long()),
        lambda z: z(3, 2).gather(0, z(4).long()),
        lambda z: z(3, 2).gather(0, z(4, 2)),
        lambda z: z(3, 2).scatter(0, z(4, 2).long(), z(3, 2)),
        lambda z: z(3, 2).scatter(0, z(3, 2).long(), z(3, 2).double()),
        lambda z: z(3, 2).scatter_add(0, z(4, 2).long(), z(3, 2)),
        lambda z: z(3, 2).index_select(0, z(4, 2).long()),
        lambda z: z(3, 2).index_add(0, z(2).long(), z(3, 2)),
        lambda z: z(2, 3).masked_select(z(4) > 0),
        lambda z: z(3).topk(4),
        lambda z: z(3).sort(dim=1),
        lambda z: F(z(1)).one_hot(z(1), 2),
        lambda z: F(z(1)).embedding(z(1), z(2, 3)),
    ],
    "product": [
        lambda z: z(3) @ z(4),
        lambda z: z(2, 3) @ z(4),
        lambda z: z(3) @ z(4, 5),
        lambda z: z(2, 3) @ z(4, 5),
        lambda z: z(2, 2, 3) @ z(2, 4, 5),
        lambda z: z(2, 2, 3) @ z(3, 3, 5),
        lambda z: z(2, 2, 3) @ z(4),
        lambda z: z(2, 2, 3) @ z(4, 5),
        lambda z: z(3) @ z(2, 4, 5),
        lambda z: z(()) @ z(2, 3),
        lambda z: z(3).mm(z(3)),
        lambda z: z(2, 3).bmm(z(2, 3)),
        lambda z: z(2, 2, 3).bmm(z(3, 3, 3)),
        lambda z: z(2, 3).mv(z(2)),
        lambda z: z(2, 2).dot(z(2)),
        lambda z: z(2).dot(z(3)),
        lambda z: z(2, 2).outer(z(2)),
        lambda z: z(2, 2).addmm(z(2, 3), z(4, 2)),
        lambda z: F(z(1)).linear(z(2, 3), z(4, 5)),
        lambda z: F(z(1)).linear(z(2, 3), z(4, 3), z(5)),
        lambda z: lib(z(1)).einsum("ij,jk", z(2, 3), z(4, 5)),
        lambda z: lib(z(1)).einsum("ij,jk", z(2, 3)),
        lambda z: lib(z(1)).einsum("ijk", z(2, 3)),
        lambda z: lib(z(1)).einsum("ij->k", z(2, 3)),
        lambda z: lib(z(1)).einsum("i1->i", z(2, 3)),
    ],
    "layer": [
        lambda z: F(z(1)).conv2d(z(1, 2, 4, 4), z(3, 3, 2, 2)),
        lambda z: F(z(1)).conv2d(z(1, 2, 4, 4), z(3, 2, 5, 5)),
        lambda z: F(z(1)).conv2d(z(4, 4), z(3, 2, 5, 5)),
        lambda z: F(z(1)).conv2d(z(1, 2, 4, 4), z(3, 2, 2, 2), z(4)),
        lambda z: F(z(1)).conv2d(z(1, 2, 4, 4), z(3, 1, 2, 2), groups=2),
        lambda z: F(z(1)).conv2d(z(1, 2, 4, 4), z(2, 2, 2, 2), stride=2, padding="same"),
        lambda z: F(z(1)).max_pool2d(z(1, 2, 4, 4), 5),
        lambda z: F(z(1)).max_pool2d(z(1, 2, 4, 4), 2, padding=2),
        lambda z: F(z(1)).layer_norm(z(2, 3), (4,)),
        lambda z: F(z(1)).layer_norm(z(2, 3), (3,), z(4)),
    ],
}
CASES = [
    pytest.param(call, id=f"{group}{number}")
    for group, calls in MISTAKES.items()
    for number, call in enumerate(calls)
]


def _zeros(library: Any) -> Callable[..., Any]:
    return lambda *shape: library.zeros(*shape)


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{4,}|-?\d+", text.lower()))


@pytest.mark.parametrize("call", CASES)
def test_a_mistake_is_refused_at_once_as_pytorch_refuses_it(call: Callable[[Any], Any]):
    with pytest.raises((RuntimeError, IndexError, ValueError, TypeError)) as theirs:
        call(_zeros(torch))
    families = [
        kind for kind in (IndexError, ValueError, TypeError, RuntimeError) if isinstance(theirs.value, kind)
    ]
    with pytest.raises(families[0]) as ours:
        call(_zeros(gt))
    assert isinstance(ours.value, GTError | ValueError | TypeError)
    said, meant = _words(str(theirs.value)), _words(str(ours.value))
    assert len(said & meant) >= 0.5 * len(said), f"ours:   {ours.value}\ntheirs: {theirs.value}"
