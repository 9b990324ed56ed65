"""The enumerations that instructions of `nki.isa` take."""

import enum
from typing import Any

from triton_viz.dsls.nki.hardware import target


class engine(enum.Enum):
    """The engines of a core."""

    tensor = "tensor"
    vector = "vector"
    scalar = "scalar"
    gpsimd = "gpsimd"
    dma = "dma"
    sync = "sync"
    unknown = "unknown"


tensor_engine, vector_engine, scalar_engine = engine.tensor, engine.vector, engine.scalar
gpsimd_engine, unknown_engine = engine.gpsimd, engine.unknown


class reduce_cmd(enum.Enum):
    """The effect of an instruction on the engine's accumulators."""

    idle = "idle"
    reset = "reset"
    reduce = "reduce"
    reset_reduce = "reset_reduce"
    load_reduce = "load_reduce"


class dge_mode(enum.Enum):
    """The engine that generates a DMA's descriptors; ignored here."""

    unknown = "unknown"
    swdge = "swdge"
    hwdge = "hwdge"
    none = "none"


class oob_mode(enum.Enum):
    """The treatment of an index outside of a tensor: an error, or ignored."""

    error = "error"
    skip = "skip"


class matmul_perf_mode(enum.Enum):
    """How a product of fp8 tiles is computed; ignored here."""

    none = "none"
    double_row = "double_row"


class nc_version(enum.IntEnum):
    """The generations of cores, which kernels compare."""

    gen2 = 2
    gen3 = 3
    gen4 = 4


def get_nc_version() -> nc_version:
    """The generation that kernels are checked for."""
    return nc_version[target().version]


def engine_name(asked: Any) -> str | None:
    """An engine's name; None for any engine."""
    name = asked.value if isinstance(asked, enum.Enum) else asked
    return None if name in (None, 0, "unknown") else str(name)


def word(given: Any) -> str:
    """The name of an enumeration's member."""
    return given.value if isinstance(given, enum.Enum) else str(given)
