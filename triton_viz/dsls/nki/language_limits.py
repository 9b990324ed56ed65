"""The parts of `nki.language` for limits of the chip and of dtypes, and predicates of memory regions."""

from typing import Any

import numpy as np

from triton_viz.dsls.nki import hardware
from triton_viz.dsls.nki.buffers import MemoryRegion, psum, sbuf
from triton_viz.dsls.nki.dtypes import as_dtype


class _TileSize:
    """The limits of the hardware."""

    pmax = hardware.PARTITIONS
    psum_fmax = psum_bank_fmax = hardware.PSUM_BANK_BYTES // 4
    gemm_stationary_fmax = hardware.STATIONARY_FREE
    gemm_moving_fmax = hardware.MOVING_FREE
    bn_stats_fmax = hardware.BN_STATS_FREE
    psum_min_align = 4
    sbuf_min_align = 1

    @property
    def total_available_sbuf_size(self) -> int:
        """The bytes of each partition."""
        return hardware.target().sbuf_bytes


tile_size = _TileSize()


class _FloatLimits:
    """The limits of a floating-point dtype."""

    def __init__(self, dtype: np.dtype):
        import ml_dtypes

        found = ml_dtypes.finfo(dtype)
        self.min, self.max, self.eps = (float(getattr(found, name)) for name in ("min", "max", "eps"))
        self.tiny = float(found.tiny)


def finfo(dtype: Any) -> Any:
    """The limits of a floating-point dtype."""
    return _FloatLimits(as_dtype(dtype))


class NKIObject:
    """A structure of named fields that a kernel may receive."""

    def __init__(self, **fields: Any):
        vars(self).update(fields)


def is_hbm(buffer: MemoryRegion) -> bool:
    """Whether it is a region of HBM."""
    return buffer.memory == "HBM"


def is_on_chip(buffer: MemoryRegion) -> bool:
    """Whether it is SBUF or PSUM."""
    return buffer.memory != "HBM"


def is_sbuf(buffer: MemoryRegion) -> bool:
    """Whether it is SBUF."""
    return buffer is sbuf


def is_psum(buffer: MemoryRegion) -> bool:
    """Whether it is PSUM."""
    return buffer is psum
