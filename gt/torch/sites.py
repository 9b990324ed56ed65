"""Which line of the user's code asked for an op.

The stack between the user's line and a kernel is PyTorch's own Python code (modules, functions, optimizers)
and this package's. What a backward pass issues is attributed to the line that asked for it.
"""

import sys
from pathlib import Path
from types import FrameType

import torch

from gt.client.client import Client

_frame = sys._getframe
_INTERNAL = tuple(str(Path(module).parent) for module in (torch.__file__, str(Path(__file__).parent)))

_last = 0
"""The last line that the user's own thread was at."""


def site(client: Client) -> int:
    """The number of the user's line: the nearest frame outside of PyTorch and gt."""
    global _last
    frame: FrameType | None = _frame(2)
    sites = client.sites
    while frame is not None:
        number = sites.get((id(frame.f_code), frame.f_lasti))
        if number is None:
            number = _add(client, frame)
        if number >= 0:
            _last = number
            return number
        frame = frame.f_back
    return _last


def _add(client: Client, frame: FrameType) -> int:
    if frame.f_code.co_filename.startswith(_INTERNAL):
        client.sites[id(frame.f_code), frame.f_lasti] = -1
        client._code.append(frame.f_code)
        return -1
    return client._new_site(frame)
