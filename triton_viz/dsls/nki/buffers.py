"""The memory regions of `nki.language`, from which a kernel allocates."""

import enum


class MemoryRegion(enum.Enum):
    """A memory region."""

    sbuf = "sbuf"
    psum = "psum"
    private_hbm = "private_hbm"
    shared_hbm = "shared_hbm"

    @property
    def memory(self) -> str:
        """The memory of the region: HBM, SBUF or PSUM."""
        return {"sbuf": "SBUF", "psum": "PSUM"}.get(self.value, "HBM")


sbuf, psum = MemoryRegion.sbuf, MemoryRegion.psum
private_hbm, shared_hbm = MemoryRegion.private_hbm, MemoryRegion.shared_hbm
hbm = private_hbm

BUFFERS = {"SBUF": sbuf, "PSUM": psum, "HBM": shared_hbm}
_NAMES = {"hbm": hbm} | {region.value: region for region in MemoryRegion}


def as_region(buffer: object) -> MemoryRegion:
    """The region of an argument `buffer`; SBUF without one."""
    if buffer is None:
        return sbuf
    if isinstance(buffer, MemoryRegion):
        return buffer
    if isinstance(buffer, str) and buffer in _NAMES:
        return _NAMES[buffer]
    # Allocators of nki.compiler name their memory, and possibly an address, which is ignored.
    region = getattr(buffer, "region", None)
    if isinstance(region, MemoryRegion):
        return region
    raise TypeError(
        f"buffer={buffer!r} is not a memory region: give nl.sbuf, nl.psum, nl.shared_hbm or nl.private_hbm"
    )
