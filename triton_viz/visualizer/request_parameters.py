"""The parameters of a request. An invalid one is answered by an error that names the valid values."""

import math

from flask import request
from werkzeug.exceptions import BadRequest, NotFound

from triton_viz.core.data import Launch, Program
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.core.trace import launches
from triton_viz.visualizer.raw_tensor_data import find
from triton_viz.visualizer.tensor_tiles import Window

MOST_CELLS = 1 << 22
MOST_COUNTED = 1 << 28
"""The most elements or programs for which an answer computes a number each, which takes a few gigabytes."""


def number(name: str, default: int | None = None, least: int = 0, most: int = 10**15) -> int:
    """An integer parameter of the request."""
    text = request.args.get(name)
    if text is None:
        if default is None:
            raise BadRequest(f"{name} is missing: give an integer.")
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 17):
        raise BadRequest(f"{name} is an integer, not {text[:40]!r}.")
    value = int(text)
    if not least <= value <= most:
        raise BadRequest(f"{name} is an integer from {least} to {most}, not {value}.")
    return value


def choice(name: str, choices: tuple[str, ...]) -> str:
    """A parameter with a fixed set of values; the first one by default."""
    text = request.args.get(name, choices[0])
    if text not in choices:
        raise BadRequest(f"{name} is one of {', '.join(choices)}, not {text[:40]!r}.")
    return text


def launch() -> Launch:
    """The requested launch; by default the newest."""
    id = request.args.get("launch")
    for found in reversed(launches):
        if id is None or str(found.id) == id:
            return found
    raise NotFound(f"There is no launch {(id or '')[:40]}." if launches else "No kernel was traced yet.")


def program(of: Launch) -> Program:
    """The requested program; by default the first."""
    text = request.args.get("program", "0,0,0")
    parts = text.split(",")
    if len(parts) != 3 or not all(part.isascii() and part.isdecimal() and len(part) < 12 for part in parts):
        raise BadRequest(f"A program is three numbers such as 0,0,0, not {text[:40]!r}.")
    x, y, z = (int(part) for part in parts)
    if 0 in of.grid:
        raise NotFound(f"This launch of {of.kernel} ran no program: its grid is {of.grid}.")
    if any(index >= size for index, size in zip((x, y, z), of.grid, strict=True)):
        raise NotFound(f"The grid {of.grid} of {math.prod(of.grid)} programs has no ({x}, {y}, {z}).")
    return x, y, z


def tensor(of: Launch) -> TensorInfo:
    """The requested tensor."""
    name = request.args.get("tensor", "")
    for found in of.tensors:
        if found.name == name:
            return found
    names = ", ".join(tensor.name for tensor in of.tensors) or "none"
    raise NotFound(f"{of.kernel} has no tensor {name[:40]!r}; there is {names}.")


def each_of(count: int, what: str) -> None:
    """Refuse an answer that has to process each of too many items, which would exhaust memory."""
    if count > MOST_COUNTED:
        raise BadRequest(f"{what} are {count:,}: at most {MOST_COUNTED:,} are looked at one by one.")


def op(name: str = "uuid") -> tuple[str, Launch, int, Program]:
    """The requested op, by its uuid."""
    uuid = request.args.get(name, "")
    try:
        return uuid, *find(uuid)
    except KeyError:
        raise NotFound(f"There is no op {uuid[:60]!r}.") from None


def window(count: int) -> Window:
    """The requested window of a matrix."""
    found = Window(
        count=min(count, number("until", count)),
        columns=min(number("columns", least=1), max(count, 1)),  # a longer row has nothing more to show
        top=number("top", 0),
        left=number("left", 0),
        across=number("across", least=1, most=8192),
        down=number("down", least=1, most=8192),
        bin_x=number("bin_x", 1, least=1),
        bin_y=number("bin_y", 1, least=1),
    )
    if found.across * found.down > MOST_CELLS:
        raise BadRequest(f"{found.across} by {found.down} cells are more than {MOST_CELLS}: ask for fewer.")
    return found
