"""What the core needs to know of a language."""

import contextlib
import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from triton_viz.core.data import Op

if TYPE_CHECKING:
    from triton_viz.core.client import ClientManager

Adapter = Callable[..., dict[str, Any]]
"""From an op's own arguments to the standardized ones that callbacks receive.

Raw `addresses`, the `width` of each access in bytes and a `mask` reach callbacks as `tensor`, `offsets` and
`mask`: the core looks them up.
"""


@dataclasses.dataclass(frozen=True)
class DSL:
    """One backend: where its ops live, what they are, and how its kernels are run."""

    name: str
    namespace: object
    """The object whose attributes are the ops."""
    operations: dict[str, tuple[type[Op], Adapter]]
    """For each op by attribute name: the type of its record, and its adapter."""
    patch_calls: Callable[["ClientManager"], contextlib.AbstractContextManager[None]]
    """Report a launch to the manager, and let kernels call each other, while inside."""
