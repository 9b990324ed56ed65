"""`torch.tapestry`: the device module that PyTorch requires, with functions that programs written for CUDA
call."""

import contextlib
import functools
import os
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from gt import debug
from gt.tensors import random


def check_index(device: Any) -> None:
    """Raise RuntimeError for any device but tapestry:0."""
    index = device if isinstance(device, int) else torch.device(device).index if device is not None else None
    if index not in (None, 0):
        raise RuntimeError(
            f"tapestry:{index}: invalid device ordinal. There is one device, tapestry:0, however many "
            "workers there are"
        )


class Stream(torch.Stream):
    """A stream of the device, of which there is one: the instructions go out in the program's order."""

    def __new__(cls, device: object = None, priority: int = 0) -> "Stream":
        """The device's stream."""
        check_index(device)
        return super().__new__(cls, device="tapestry:0")

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def synchronize(self) -> None:
        """Wait until everything issued so far is done."""
        TapestryModule.synchronize()

    def wait_stream(self, other: Any) -> None:
        """Nothing to wait for: there is one stream."""

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for: there is one stream."""

    def record_event(self, event: Any = None) -> Any:
        """An event at the current position in the stream."""
        event = event or Event()
        event.record(self)
        return event


class Event:
    """A position in the stream, and the time when everything before it was done."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self._done: float | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Wait until everything issued so far is done, and take the time."""
        TapestryModule.synchronize()
        self._done = time.perf_counter()

    def query(self) -> bool:
        """Whether everything before the event is done."""
        return True

    def wait(self, stream: Stream | None = None) -> None:
        """Nothing to wait for: there is one stream."""

    def synchronize(self) -> None:
        """Nothing to wait for: recording waited."""

    def elapsed_time(self, end: "Event") -> float:
        """The milliseconds between two events."""
        if self._done is None or end._done is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end._done - self._done) * 1e3


class device:
    """A context in which this is the current device: there is one only."""

    def __init__(self, device: object) -> None:
        check_index(device)
        self.idx = 0

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


class device_of(device):
    """A context in which a tensor's device is the current one; a tensor of another device changes nothing."""

    def __init__(self, obj: torch.Tensor) -> None:
        super().__init__(None)


class Properties(NamedTuple):
    """What is known of the device."""

    name: str = "tapestry"


class amp:
    """`torch.tapestry.amp`: mixed precision, as in `torch.cuda.amp`."""

    GradScaler = functools.partial(torch.amp.GradScaler, "tapestry")
    autocast = functools.partial(torch.autocast, "tapestry")


class TapestryModule:
    """The device module: one device, which is the whole cluster."""

    Stream = Stream
    Event = Event
    amp = amp
    device = device
    device_of = device_of
    OutOfMemoryError = torch.OutOfMemoryError
    _initialized = True
    """Checkpointing preserves the generator's state only for a device with this attribute."""

    def __init__(self) -> None:
        self._most = 0

    @staticmethod
    def is_available() -> bool:
        """Whether the device can be used: always."""
        return True

    @staticmethod
    def is_initialized() -> bool:
        """Whether the device is set up."""
        return True

    @staticmethod
    def init() -> None:
        """Nothing to do: the first op starts the server."""

    _lazy_init = init

    @staticmethod
    def _is_in_bad_fork() -> bool:
        return False

    @staticmethod
    def device_count() -> int:
        """The number of devices: one, however many workers there are."""
        return 1

    @staticmethod
    def current_device() -> int:
        """The index of the current device."""
        return 0

    @staticmethod
    def set_device(device: object) -> None:
        """There is one device only."""
        check_index(device)

    @staticmethod
    def get_device_name(device: object = None) -> str:
        """The device's name."""
        check_index(device)
        return "tapestry"

    @staticmethod
    def get_device_properties(device: object = None) -> Properties:
        """What is known of the device: its name. Workers may be of any kind."""
        check_index(device)
        return Properties()

    @staticmethod
    def is_bf16_supported(including_emulation: bool = True) -> bool:
        """Whether bfloat16 can be computed with: always."""
        return True

    # --- waiting ---

    @staticmethod
    def synchronize(device: object = None) -> None:
        """Wait until everything issued so far is done."""
        debug.get_worker_stats()

    @staticmethod
    def current_stream(device: object = None) -> Stream:
        """The stream: there is one only."""
        return Stream(device)

    default_stream = current_stream

    @staticmethod
    def set_stream(stream: Stream) -> None:
        """There is one stream only."""

    @staticmethod
    @contextlib.contextmanager
    def stream(stream: Stream | None) -> Iterator[None]:
        """A context in which this is the current stream: there is one only."""
        yield

    @staticmethod
    def is_current_stream_capturing() -> bool:
        """Whether a graph is being captured: never. Repeated sequences are found without that."""
        return False

    # --- random numbers ---

    @staticmethod
    def manual_seed(seed: int) -> None:
        """Seed the random number generator."""
        random.manual_seed(int(seed))

    manual_seed_all = manual_seed

    @staticmethod
    def seed() -> None:
        """Seed the random number generator with a random seed."""
        random.manual_seed(int.from_bytes(os.urandom(8), "little"))

    seed_all = seed

    @staticmethod
    def initial_seed() -> int:
        """The seed."""
        return random.get_state()[0]

    @staticmethod
    def get_rng_state(device: object = None) -> torch.Tensor:
        """The generator's state: the seed, and how many ops have drawn."""
        seed, drawn = random.get_state()
        numbers = [seed & (2**64 - 1), drawn]
        return torch.tensor(
            [byte for n in numbers for byte in n.to_bytes(8, "little")], dtype=torch.uint8, device="cpu"
        )

    @staticmethod
    def set_rng_state(new_state: torch.Tensor, device: object = None) -> None:
        """Restore a state from `get_rng_state`."""
        data = bytes(new_state.tolist())
        random.set_state(int.from_bytes(data[:8], "little"), int.from_bytes(data[8:], "little"))

    @classmethod
    def get_rng_state_all(cls) -> list[torch.Tensor]:
        """The generators' states, of each device."""
        return [cls.get_rng_state()]

    @classmethod
    def set_rng_state_all(cls, new_states: list[torch.Tensor]) -> None:
        """Restore states from `get_rng_state_all`."""
        cls.set_rng_state(new_states[0])

    # --- memory ---

    def memory_allocated(self, device: object = None) -> int:
        """The bytes that the tensors of all clients take on all workers."""
        now = sum(int(stats.get("bytes", 0)) for stats in debug.get_worker_stats().values())
        self._most = max(self._most, now)
        return now

    memory_reserved = memory_allocated

    def max_memory_allocated(self, device: object = None) -> int:
        """The largest result of `memory_allocated` so far: memory is not tracked between calls."""
        self.memory_allocated()
        return self._most

    max_memory_reserved = max_memory_allocated

    def reset_peak_memory_stats(self, device: object = None) -> None:
        """Reset the result of `max_memory_allocated`."""
        self._most = 0

    reset_max_memory_allocated = reset_peak_memory_stats

    def memory_summary(self, device: object = None, abbreviated: bool = False) -> str:
        """The bytes and tensors of each worker, as text."""
        rows = debug.get_worker_stats().items()
        lines = [f"{name}: {stats['bytes']:,} bytes in {stats['tensors']} tensors" for name, stats in rows]
        return "\n".join(lines)

    @staticmethod
    def empty_cache() -> None:
        """Nothing to do: workers give memory back when tensors are freed."""

    ipc_collect = empty_cache

    def memory_stats(self, device: object = None) -> dict[str, int]:
        """The bytes that tensors take, now and at most, under CUDA's names."""
        now = self.memory_allocated()
        return {"allocated_bytes.all.current": now, "allocated_bytes.all.peak": self._most}

    @staticmethod
    def get_amp_supported_dtype() -> list[torch.dtype]:
        """The dtypes that autocast may use."""
        return [torch.bfloat16, torch.float16]


def patch_accelerator(module: TapestryModule) -> None:
    """Make `torch.accelerator`, which calls C++ for these, call the device's module."""
    # These names are private to PyTorch; without them, its public functions end in internal assertions.
    torch._C._accelerator_synchronizeDevice = lambda index: module.synchronize()
    torch._C._accelerator_isAllocatorInitialized = lambda: False
    # `nn.DataParallel` divides a batch among devices: all of it goes to the only one.
    torch._C._scatter = lambda tensor, *_: [tensor.to("tapestry")]
