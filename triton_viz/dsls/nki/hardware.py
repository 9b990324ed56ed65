"""The hardware that NKI kernels are written for: sizes, engines, and the instructions of each engine.

The numbers are from AWS's public architecture guides, for one NeuronCore. Estimated times serve to compare
engines with each other, not to predict a run.
"""

import dataclasses
import os

from triton_viz.errors import UnsupportedError

PARTITIONS = 128
"""The partitions of SBUF and PSUM, which engines process in parallel: the largest first axis of a tile."""
PSUM_BYTES = 16 * 1024
"""Of each partition."""
PSUM_BANK_BYTES = 2 * 1024
"""Bytes of each partition. A product of tiles has to fit into one bank."""
STATIONARY_FREE = 128
"""The most columns of the stationary tile of the Tensor Engine."""
MOVING_FREE = 512
"""The most columns of the moving tile: the number of float32 elements in a bank."""
BN_STATS_FREE = 512
"""The most elements of each partition for `bn_stats`."""
VECTOR_TRANSPOSE = 32
"""The largest square that the Vector Engine transposes."""

ENGINES = ("tensor", "vector", "scalar", "gpsimd", "dma", "sync")


@dataclasses.dataclass(frozen=True)
class Target:
    """One NeuronCore of a generation."""

    name: str
    version: str
    """The name in `nki.isa.nc_version`."""
    sbuf_bytes: int
    """Of each partition."""
    bandwidth: float
    """Bytes per second from HBM, one core's share."""
    clocks: dict[str, float]
    """The clock of each engine, in Hz."""


_CLOCKS = {"tensor": 1.4e9, "vector": 0.96e9, "scalar": 1.4e9, "gpsimd": 1.4e9, "sync": 1.4e9}
TARGETS = {
    "trn1": Target("trn1", "gen2", 192 * 1024, 0.41e12, _CLOCKS),
    "trn2": Target("trn2", "gen3", 192 * 1024, 0.36e12, _CLOCKS | {"tensor": 2.8e9}),
    "trn3": Target("trn3", "gen4", 256 * 1024, 0.61e12, _CLOCKS | {"tensor": 2.8e9, "vector": 1.2e9}),
}
"""The targets, by the names of the instances that have them."""


def target() -> Target:
    """The target whose limits apply: NEURON_PLATFORM_TARGET_OVERRIDE, or trn2 by default."""
    asked = os.environ.get("NEURON_PLATFORM_TARGET_OVERRIDE") or "trn2"
    other = {"inf2": "trn1"} | {known.version: known.name for known in TARGETS.values()}
    name = other.get(asked.lower(), asked.lower())
    if name not in TARGETS:
        known = ", ".join(TARGETS)
        raise UnsupportedError(
            f"NEURON_PLATFORM_TARGET_OVERRIDE is {asked!r}, and triton_viz knows {known} and inf2"
        )
    return TARGETS[name]


_ANY = ("vector", "scalar", "gpsimd")
RUNS_ON: dict[str, tuple[str, ...]] = {
    "dma_copy": ("dma",),
    "dma_transpose": ("dma",),
    "dma_compute": ("dma",),
    "nc_matmul": ("tensor",),
    "nc_transpose": ("tensor", "vector"),
    "activation": ("scalar",),
    "activation_reduce": ("scalar",),
    "tensor_tensor": ("vector", "gpsimd"),
    "tensor_scalar": _ANY,
    "tensor_scalar_reduce": ("vector",),
    "tensor_scalar_cumulative": ("vector",),
    "scalar_tensor_tensor": ("vector",),
    "tensor_tensor_scan": ("vector",),
    "tensor_reduce": ("vector",),
    "tensor_partition_reduce": ("gpsimd",),
    "tensor_copy": _ANY,
    "tensor_copy_predicated": ("vector",),
    "select_reduce": ("vector",),
    "range_select": ("vector",),
    "reciprocal": ("vector",),
    "exponential": ("vector",),
    "bn_stats": ("vector",),
    "bn_aggr": ("vector",),
    "max8": ("vector",),
    "nc_find_index8": ("vector",),
    "nc_match_replace8": ("vector",),
    "nc_stream_shuffle": ("vector",),
    "memset": ("vector", "gpsimd"),
    "dropout": ("vector",),
    "rng": ("vector", "gpsimd"),
    "iota": ("gpsimd",),
    "affine_select": ("gpsimd",),
    "local_gather": ("gpsimd",),
    "nc_n_gather": ("gpsimd",),
    "sequence_bounds": ("gpsimd",),
    "register": ("sync",),
}
"""For each instruction: the engines that execute it, the default first."""

_FIXED_CYCLES = 64
"""The fixed cost of an instruction."""


def seconds(engine: str, on: Target, elements: int, moved: int, slow: int = 1) -> float:
    """The estimated time of an instruction on an engine, in seconds.

    Engines take one element of each partition (for a product: one column of the moving tile) per cycle.
    `moved` are the bytes of a DMA, `slow` is the number of passes that the dtype needs.
    """
    if engine == "dma":
        return moved / on.bandwidth
    return (max(elements, 1) * slow + _FIXED_CYCLES) / on.clocks[engine]
