"""Where a client's tensor physically is."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class TensorHandle:
    """Maps one `client:tensor` to the worker that holds it.

    A client counts its own tensors from zero, and many clients share a worker; the physical name
    keeps them apart.
    """

    client: str
    tensor: int
    worker: str

    @property
    def name(self) -> str:
        """What the worker calls it."""
        return f"{self.client}_{self.tensor}"
