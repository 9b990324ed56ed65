"""Devices and their rooflines: lower bounds of a kernel's run time.

Peak rates are those that vendors publish, without sparsity.
"""

import dataclasses

from triton_viz.clients.profiler.kernel_profile import Roofline, Work
from triton_viz.errors import UnsupportedError

_TERA = 10**12


@dataclasses.dataclass(frozen=True)
class Device:
    """A GPU, or a core of another accelerator."""

    name: str
    bandwidth: float
    """Memory bandwidth in bytes per second."""
    cache: int
    """The size of the last-level cache in bytes."""
    processors: int
    """The number of multiprocessors or compute units: at least this many programs run at once."""
    vector: dict[str, float]
    """Operations per second by precision, for arithmetic on elements."""
    dot: dict[str, float]
    """Operations per second by precision, for products of tiles. Triton multiplies fp32 as tf32 by
    default."""

    def peak(self, unit: str, precision: str) -> float:
        """The operations per second of a unit at a precision, or at the next wider one it supports."""
        peaks = self.dot if unit == "dot" else self.vector
        for name in (precision, *_WIDER.get(precision, ()), "fp32"):
            if name in peaks:
                return peaks[name]
        raise KeyError(precision)


_WIDER = {"fp4": ("fp8", "fp16"), "fp8": ("fp16",), "bf16": ("fp16",), "int8": ("fp16",)}


def _device(
    name: str,
    bandwidth: float,
    cache: float,
    processors: int,
    vector: dict[str, float],
    dot: dict[str, float],
) -> Device:
    """A device from its data sheet: bandwidth and peaks in tera (10**12) per second, cache in MiB."""
    scaled = [{key: value * _TERA for key, value in peaks.items()} for peaks in (vector, dot)]
    return Device(name, bandwidth * _TERA, int(cache * 2**20), processors, *scaled)


def _hopper(name: str, bandwidth: float) -> Device:
    vector = {"fp64": 33.5, "fp32": 66.9, "fp16": 133.8}
    dot = {"fp64": 66.9, "fp32": 494.7, "fp16": 989.4, "fp8": 1978.9, "int8": 1978.9}
    return _device(name, bandwidth, 50, 132, vector, dot)


DEVICES: dict[str, Device] = {
    device.name.lower().replace(" ", ""): device
    for device in (
        _hopper("H100", 3.35),
        _hopper("H200", 4.8),
        _device(
            *("A100", 2.039, 40, 108),
            vector={"fp64": 9.7, "fp32": 19.5, "fp16": 78},
            dot={"fp64": 19.5, "fp32": 156, "fp16": 312, "int8": 624},
        ),
        _device(
            *("MI300X", 5.3, 256, 304),
            vector={"fp64": 81.7, "fp32": 163.4, "fp16": 163.4},
            dot={"fp64": 163.4, "fp32": 653.7, "fp16": 1307.4, "fp8": 2614.9, "int8": 2614.9},
        ),
        _device(
            *("RTX 4090", 1.008, 72, 128),
            vector={"fp64": 1.29, "fp32": 82.6, "fp16": 82.6},
            dot={"fp64": 1.29, "fp32": 82.6, "fp16": 165.2, "fp8": 330.3, "int8": 660.6},
        ),
        _device(
            *("L40S", 0.864, 96, 142),
            vector={"fp64": 1.43, "fp32": 91.6, "fp16": 91.6},
            dot={"fp64": 1.43, "fp32": 183, "fp16": 362, "fp8": 733, "int8": 733},
        ),
        # One core each, with its share of the bandwidth: an NKI program runs on one core.
        _device(
            *("Trainium1", 0.41, 24, 1),
            vector={"fp32": 0.3},
            dot={"fp32": 23.75, "fp16": 95, "fp8": 95},
        ),
        _device(
            *("Trainium2", 0.36, 24, 1),
            vector={"fp32": 0.3},
            dot={"fp32": 22.6, "fp16": 83.4, "fp8": 162.4},
        ),
    )
}
"""By name in lower case, without spaces."""


def find_device(device: str | Device) -> Device:
    """A device by its name, or itself."""
    if isinstance(device, Device):
        return device
    found = DEVICES.get(device.lower().replace(" ", "").replace("-", ""))
    if found is None:
        names = ", ".join(known.name for known in DEVICES.values())
        raise UnsupportedError(f"no device is called {device!r}: there are {names}, or give a Device")
    return found


def roofline(device: Device, work: tuple[Work, ...], least: int, programs: int, most: int) -> Roofline:
    """The roofline of a kernel that moves between `least` and `most` bytes.

    `programs` are the bytes that it moves if programs share nothing through the cache.
    """
    flops = sum(line.flops for line in work)
    memory = least if least <= device.cache else programs
    computing = sum(line.flops / device.peak(line.unit, line.precision) for line in work)
    loading = memory / device.bandwidth
    seconds = max(computing, loading)
    # the peak rate for this mix of units and precisions
    peak = flops / computing if computing else device.peak("vector", "fp32")
    return Roofline(
        device=device.name,
        flops=flops,
        least_bytes=least,
        most_bytes=most,
        memory_bytes=memory,
        intensity=flops / memory if memory else 0.0,
        ridge=peak / device.bandwidth,
        bound="compute" if computing > loading else "memory",
        seconds=seconds,
        attainable=flops / seconds if seconds else 0.0,
    )
