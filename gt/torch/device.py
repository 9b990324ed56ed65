"""`torch.tapestry`: what PyTorch asks of a device's module."""

import torch

from gt import debug
from gt.tensors import random


class TapestryModule:
    """The device module: one device, which is the whole cluster."""

    @staticmethod
    def is_available() -> bool:
        """Whether the device can be used: always."""
        return True

    @staticmethod
    def is_initialized() -> bool:
        """Whether the device is set up."""
        return True

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

    @staticmethod
    def synchronize(device: object = None) -> None:
        """Wait until everything issued so far is done."""
        debug.get_worker_stats()

    @staticmethod
    def manual_seed(seed: int) -> None:
        """Start the random numbers over."""
        random.manual_seed(int(seed))

    @staticmethod
    def manual_seed_all(seed: int) -> None:
        """Start the random numbers over."""
        random.manual_seed(int(seed))

    @staticmethod
    def memory_allocated(device: object = None) -> int:
        """The bytes that this program's tensors, and those of others, take on all workers."""
        return sum(int(stats.get("bytes", 0)) for stats in debug.get_worker_stats().values())

    @staticmethod
    def get_amp_supported_dtype() -> list[torch.dtype]:
        """The dtypes that autocast may use."""
        return [torch.bfloat16, torch.float16]
