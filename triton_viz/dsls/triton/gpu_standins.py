"""Stand-ins for GPU queries of Triton and PyTorch, on a machine without a GPU.

Before a launch, a library may query the number of multiprocessors, enter a device guard or read the current
stream. During a launch, and inside of `with triton_viz.trace(...)`, these calls return the properties of an
H100 instead of failing, so that the library reaches the launch. `torch.cuda.is_available()` stays False, and
tensors cannot be created on "cuda".

An H100 is the default target of compilation, it supports all of Triton's language (tensor descriptors, 8-bit
floats), and its 132 multiprocessors are not a power of two, so that persistent kernels have an uneven last
round, as on a real GPU.
"""

import contextlib
import dataclasses
import functools
import operator
import os
import threading
import time
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import torch
from triton.backends import backends
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime import driver

from triton_viz.core.attributes import set_attributes
from triton_viz.dsls.triton import compat
from triton_viz.errors import UnsupportedError


@dataclasses.dataclass(frozen=True)
class DeviceProperties:
    """The result of `torch.cuda.get_device_properties`, with PyTorch's field names."""

    name: str = "NVIDIA H100 (a stand-in: there is no GPU)"
    major: int = 9
    minor: int = 0
    multi_processor_count: int = 132
    total_memory: int = 80 * 2**30
    warp_size: int = 32
    max_threads_per_block: int = 1024
    max_threads_per_multi_processor: int = 2048
    regs_per_multiprocessor: int = 65536
    shared_memory_per_block: int = 48 * 2**10
    shared_memory_per_block_optin: int = 227 * 2**10
    shared_memory_per_multiprocessor: int = 228 * 2**10
    L2_cache_size: int = 50 * 2**20
    clock_rate: int = 1_980_000
    """In kHz, like `memory_clock_rate`."""
    memory_clock_rate: int = 2_619_000
    memory_bus_width: int = 5120
    is_integrated: int = 0
    is_multi_gpu_board: int = 0
    gcnArchName: str = ""


DEVICE = DeviceProperties()


class Stream:
    """The only stream. Launches are synchronous."""

    cuda_stream = 0
    stream_id = 0
    device_index = 0

    def query(self) -> bool:
        """Whether all work is done."""
        return True

    def synchronize(self, *_: Any) -> None:
        """Does nothing: launches are synchronous."""

    wait_stream = wait_event = record_event = synchronize


class Driver(DriverBase):
    """Stands in for `triton.runtime.driver.active` while there is no GPU."""

    def __init__(self) -> None:
        self.utils = types.SimpleNamespace(
            get_device_properties=_triton_properties, load_binary=_refuse, set_printf_fifo_size=_ignore
        )
        self.launcher_cls = _refuse

    @classmethod
    def is_active(cls) -> Any:  # the base class is not annotated, and returns nothing
        """False: there is no GPU."""
        return False

    def get_current_target(self) -> Any:
        """The target that a kernel would be compiled for."""
        return GPUTarget("cuda", 10 * DEVICE.major + DEVICE.minor, DEVICE.warp_size)

    def get_active_torch_device(self) -> Any:
        """The device on which a library should create tensors for its kernels."""
        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        """The part of PyTorch that a benchmark asks about devices."""
        return torch.cuda

    def get_current_device(self) -> int:
        """The index of the only device."""
        return 0

    def set_current_device(self, device: int) -> None:
        """Does nothing: there is one device."""

    def get_current_stream(self, device: int | None = None) -> int:
        """The default stream's handle."""
        return Stream.cuda_stream

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        """The compute capability: major and minor version."""
        return DEVICE.major, DEVICE.minor

    def get_benchmarker(self) -> Callable[..., Sequence[float]]:
        """A function that times one run. Its times on a CPU do not rank configs for a GPU."""
        return _run_once

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """An empty buffer: there is no GPU cache to flush."""
        return torch.empty(0, dtype=torch.int)

    def clear_cache(self, cache: torch.Tensor) -> None:
        """Overwrite the buffer of `get_empty_cache_for_benchmark`."""
        cache.zero_()

    def map_python_to_cpp_type(self, ty: str) -> str:
        """The C++ type of a launcher's argument."""
        if ty.startswith("*"):
            return "void*"
        if ty.startswith(("fp", "bf")):
            return "double" if ty == "fp64" else "float"
        width = max(8, int(ty[1:]))
        return f"{'u' if ty[0] == 'u' else ''}int{width}_t"


def _triton_properties(device: int = 0) -> dict[str, int]:
    """The properties by Triton's names."""
    return {
        "max_shared_mem": DEVICE.shared_memory_per_block_optin,
        "max_num_regs": DEVICE.regs_per_multiprocessor,
        "multiprocessor_count": DEVICE.multi_processor_count,
        "warpSize": DEVICE.warp_size,
        "sm_clock_rate": DEVICE.clock_rate,
        "mem_clock_rate": DEVICE.memory_clock_rate,
        "mem_bus_width": DEVICE.memory_bus_width,
    }


def _run_once(kernel_call: Callable[[], Any], *, quantiles: Sequence[float], **_: Any) -> list[float]:
    start = time.perf_counter()
    kernel_call()
    return [1000 * (time.perf_counter() - start)] * len(quantiles)


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise UnsupportedError(
        "there is no GPU to launch this kernel on: launch it inside `with triton_viz.trace(...)`, or put "
        "@triton_viz.trace() above it"
    )


def _ignore(*_: Any, **__: Any) -> None:
    pass


def _stands_in_for(device: Any) -> bool:
    """Whether the stand-in serves a device: None, index 0 or the CPU.

    Any other device ("cuda", "cuda:1", 2) requires a real GPU, and PyTorch raises its own error.
    """
    if device is None or isinstance(device, int):
        return device is None or device <= 0
    return str(device).split(":")[0] == "cpu"


def _answer(original: Callable[..., Any], value: Any) -> Callable[..., Any]:
    @functools.wraps(original)
    def stand_in(device: Any = None) -> Any:
        return value if _stands_in_for(device) else original(device)

    return stand_in


def _guard(original: type, nothing: Any) -> type:
    """A device guard that has no effect for the stand-in. `nothing` is PyTorch's index for no device."""

    class Guard(original):
        def __init__(self, device: Any) -> None:
            super().__init__(nothing if _stands_in_for(device) else device)

    Guard.__name__, Guard.__qualname__, Guard.__module__ = (
        original.__name__,
        original.__qualname__,
        original.__module__,
    )
    return Guard


def _on_stream(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def stand_in(stream: Any) -> Any:
        return contextlib.nullcontext() if isinstance(stream, Stream) else original(stream)

    return stand_in


def _replaced() -> list[tuple[Any, str, Callable[[Any], Any]]]:
    """What stand-ins replace: the owner, the attribute's name, and a function from the original to ours."""
    cuda, accelerator, ours, stream = torch.cuda, torch.accelerator, Driver(), Stream()
    answers = [
        (cuda, "get_device_properties", DEVICE),
        (cuda, "get_device_capability", (DEVICE.major, DEVICE.minor)),
        (cuda, "get_device_name", DEVICE.name),
        (cuda, "current_stream", stream),
        (cuda, "default_stream", stream),
        (cuda, "synchronize", None),
        (cuda, "set_device", None),
        (accelerator, "synchronize", None),
        (accelerator, "current_stream", stream),
    ]
    found: list[tuple[Any, str, Callable[[Any], Any]]] = [
        (owner, name, functools.partial(_answer, value=value)) for owner, name, value in answers
    ]
    found += [
        (cuda, "current_device", lambda original: lambda: 0),
        (cuda, "device", functools.partial(_guard, nothing=-1)),
        (cuda, "stream", _on_stream),
        (accelerator, "current_device_index", lambda original: lambda: 0),
        (accelerator, "device_index", functools.partial(_guard, nothing=None)),
    ]
    found += [(driver, name, lambda original: ours) for name in compat.driver_names()]
    # A kernel queries its target to decide whether it may use PTX, which cannot run here.
    target_info = compat.target_info()
    if target_info is not None:
        found.append((target_info, "current_target", _no_target))
    return found


def _no_target(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def current_target() -> None:
        return None

    return current_target


class _StandIns:
    """The stand-ins, which every launch puts in place: they are made anew only if an original has changed."""

    def __init__(self) -> None:
        self._replaced = _replaced()
        self._originals: list[Any] = []
        self._patches = set_attributes(())

    def patches(self) -> set_attributes:
        """The patches of the originals as they are now."""
        originals = [vars(owner).get(name) for owner, name, _ in self._replaced]
        if not self._originals or any(map(operator.is_not, originals, self._originals)):
            self._originals = originals
            self._patches = set_attributes(
                (owner, name, stand_in(original))
                for (owner, name, stand_in), original in zip(self._replaced, originals, strict=True)
            )
        return self._patches


_stand_ins = functools.cache(_StandIns)


def driver_is_active() -> bool:
    """Whether Triton has a device to run on: a GPU, or a driver that was set."""
    state = vars(driver)
    if state.get("_active") is not None or isinstance(state.get("active"), DriverBase):
        return True
    return has_gpu()


def has_gpu() -> bool:
    """Whether there is a GPU that Triton can run on."""
    return any(backend.driver.is_active() for backend in backends.values())


class _Scopes:
    """The open scopes of this process. The first to open patches, the last to close restores."""

    lock = threading.RLock()
    count = 0
    patches = set_attributes(())


if hasattr(os, "register_at_fork"):  # a forked process leaves the scope of another thread's launch
    lock = _Scopes.lock
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


@contextlib.contextmanager
def standing_in() -> Iterator[None]:
    """While inside, the stand-ins replace GPU queries. Changes nothing if Triton has an active driver.

    Scopes may be nested, overlap between threads, and be left in any order.
    """
    with _Scopes.lock:
        if not _Scopes.count:
            _Scopes.patches = set_attributes(()) if driver_is_active() else _stand_ins().patches()
            _Scopes.patches.__enter__()
        _Scopes.count += 1
    try:
        yield
    finally:
        with _Scopes.lock:
            _Scopes.count -= 1
            if not _Scopes.count:
                _Scopes.patches.__exit__(None, None, None)
