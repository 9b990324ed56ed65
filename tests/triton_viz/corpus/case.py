"""A case of the corpus: a kernel, what it is launched with, and what must come out."""

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch

from tests.triton_viz.corpus.features import Feature

Arguments = dict[str, Any]


DTYPES = re.compile(r"_?(bool|u?int(8|16|32|64)|bfloat16|float(16|32|64)|float8_[a-z0-9]+)(?=_|$)")


@dataclasses.dataclass(frozen=True)
class Case:
    """A kernel with arguments, a grid, and an oracle that knows nothing of Triton."""

    name: str
    kernel: Any
    """A plain @triton.jit function."""
    arguments: Callable[[torch.Generator], Arguments]
    """Fresh arguments by name. What begins with an underscore is not passed to the kernel: it is memory
    that the kernel reaches in another way, or something the oracle wants to know."""
    grid: Any
    expected: Callable[[Arguments], Mapping[str, torch.Tensor]]
    """What tensors hold afterwards, from the arguments before. Tensors it does not name stay as they were."""
    rtol: float = 0.0
    atol: float = 0.0
    """Zero for both means equal."""
    reorders: bool = False
    """Sums floats in an order that is the machine's choice: two runs agree to tolerance only."""
    scratch: tuple[str, ...] = ()
    """Tensors whose contents afterwards are not compared."""
    needs: Feature | None = None
    """What a release of Triton may lack."""

    @property
    def runs(self) -> bool:
        """Whether this release of Triton has what the kernel needs."""
        return self.needs is None or self.needs.present

    @property
    def kind(self) -> tuple[int, str]:
        """What cases share that differ in dtypes only."""
        return id(self.kernel), DTYPES.sub("", self.name)

    def fresh(self) -> Arguments:
        """The arguments, always the same values in new memory."""
        return self.arguments(torch.Generator().manual_seed(len(self.name)))


def launched_with(arguments: Arguments) -> Arguments:
    """What of a case's arguments the kernel is launched with."""
    return {name: value for name, value in arguments.items() if not name.startswith("_")}


def tensors_of(arguments: Arguments) -> dict[str, torch.Tensor]:
    """The tensors among the arguments by name, those in tuples as `name.0`, `name.1`."""
    found: dict[str, torch.Tensor] = {}
    for name, value in arguments.items():
        if isinstance(value, torch.Tensor):
            found[name] = value
        elif isinstance(value, tuple):
            found |= tensors_of({f"{name}.{n}": item for n, item in enumerate(value)})
    return found


def normal(generator: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normally distributed values."""
    return torch.randn(*shape, generator=generator).to(dtype)


def integers(
    generator: torch.Generator, low: int, high: int, *shape: int, dtype: torch.dtype = torch.int32
) -> torch.Tensor:
    """Evenly distributed integers, from low to below high."""
    return torch.randint(low, high, shape, generator=generator).to(dtype)


def scalars(low: int, high: int, n: int = 12, outs: int = 1) -> Callable[[torch.Generator], Arguments]:
    """Arguments of n programs that read an integer each, and write one or several."""
    return lambda g: {
        "x": integers(g, low, high, n),
        "out": torch.zeros(*((n,) if outs == 1 else (n, outs)), dtype=torch.int32),
    }


def blocks(low: int, high: int, n: int = 7, width: int = 8) -> Callable[[torch.Generator], Arguments]:
    """Arguments of n programs that read and write a block of integers each."""
    return lambda g: {
        "x": integers(g, low, high, n, width),
        "out": torch.zeros(n, width, dtype=torch.int32),
        "BLOCK": width,
    }


def per_program(function: Callable[..., int], *names: str) -> Callable[[Arguments], dict[str, torch.Tensor]]:
    """An oracle in plain Python: what each program, given its values, writes to `out`."""

    def expected(a: Arguments) -> dict[str, torch.Tensor]:
        columns = [a[name].tolist() for name in names]
        rows = [function(pid, *values) for pid, values in enumerate(zip(*columns, strict=True))]
        return {"out": torch.tensor(rows, dtype=a["out"].dtype).reshape(a["out"].shape)}

    return expected
