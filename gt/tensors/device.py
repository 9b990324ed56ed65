"""Devices, for programs that were written for PyTorch: accepted, and without effect.

The server decides where a tensor is. A worker on a machine with a GPU uses it.
"""


class Device(str):
    """A device's name, such as `cpu` or `cuda:0`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return (
            f"device(type={self.type!r})"
            if self.index is None
            else f"device(type={self.type!r}, index={self.index})"
        )

    @property
    def type(self) -> str:
        """The kind of device."""
        return self.partition(":")[0]

    @property
    def index(self) -> int | None:  # type: ignore[override] - PyTorch's name, not str's
        """Its index among the devices of its kind; None if the name has none."""
        number = self.partition(":")[2]
        return int(number) if number else None
