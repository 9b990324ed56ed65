"""Setting an attribute for a while."""

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def set_attribute(owner: object, name: str, value: Any) -> Iterator[None]:
    """Set an attribute for a while. One that came from the class is removed again, not copied down."""
    own = name in vars(owner)
    before = vars(owner)[name] if own else None
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)
