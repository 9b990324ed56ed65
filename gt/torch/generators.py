"""`torch.Generator(device="tapestry")`: random numbers that a program draws apart from those of the device.

A device that is registered in Python cannot provide generators to PyTorch. So ours is one of the CPU, which
has the state, that says it is of the device; an op that is given it takes its seed from there. The numbers
themselves are those of the stream's counter-based generator, as without `generator=`.
"""

import contextlib
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import torch

from gt.tensors import random
from gt.torch.allocation import DEVICE
from gt.torch.device import check_index

_Own: Any = torch._C.Generator
_ours: set[int] = set()
"""The addresses of the device's generators: PyTorch hands another Python object to a kernel."""


class DeviceGenerator(_Own):
    """A generator of the device."""

    def __new__(cls) -> "DeviceGenerator":
        """A generator with PyTorch's default seed."""
        made = super().__new__(cls, device="cpu")
        _ours.add(made._cdata)
        weakref.finalize(made, _ours.discard, made._cdata).atexit = False
        return made

    @property
    def device(self) -> torch.device:
        """The device."""
        return torch.device("tapestry:0")

    def clone_state(self) -> "DeviceGenerator":
        """A generator that goes on as this one does."""
        return _restored(self.get_state())

    def __reduce__(self) -> Any:
        return _restored, (self.get_state(),)

    def __deepcopy__(self, memo: dict[int, Any]) -> "DeviceGenerator":
        return self.clone_state()


def _restored(state: torch.Tensor) -> DeviceGenerator:
    made = DeviceGenerator()
    made.set_state(state)
    return made


class _OrOfDevice(type(_Own)):
    """The class of `torch.Generator`: instances are PyTorch's own, or of the device."""

    def __call__(self, device: Any = "cpu") -> Any:
        if torch.device(device).type != DEVICE.type:
            return _Own(device=device)
        check_index(device)
        return DeviceGenerator()

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, _Own)

    def __subclasscheck__(self, subclass: type) -> bool:
        return issubclass(subclass, _Own)


def patch_generator() -> None:
    """Have `torch.Generator` make generators of the device, too."""
    members = {"__doc__": _Own.__doc__, "__module__": "torch"}
    torch.Generator = _OrOfDevice("Generator", (_Own,), members)


# --- drawing ---


class _Drawing(threading.local):
    generator: Any = None


_drawing = _Drawing()


def check_generator(generator: Any) -> None:
    """Refuse another device's generator, as a CUDA device does: its numbers are not ours."""
    if generator is not None and generator._cdata not in _ours:
        raise RuntimeError(
            f"Expected a 'tapestry' device type for generator but found '{generator.device.type}'. Make it "
            'with torch.Generator(device="tapestry"), or draw on the CPU and move the result'
        )


@contextlib.contextmanager
def drawing_from(generator: Any) -> Iterator[None]:
    """Let `next_seed` draw from a generator, in this thread."""
    check_generator(generator)
    before, _drawing.generator = _drawing.generator, generator
    try:
        yield
    finally:
        _drawing.generator = before


def next_seed() -> int:
    """The seed for an op that draws, of 63 bits."""
    generator = _drawing.generator
    if generator is None:
        return random.next_seed()
    return int(torch.empty((), dtype=torch.int64, device="cpu").random_(generator=generator))
