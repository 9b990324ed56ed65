"""Origins: the operations that computed a value, for messages in the kernel's own names."""

from collections.abc import Mapping

_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "//",
    "mod": "%",
    "and": "&",
    "or": "|",
    "xor": "^",
    "shl": "<<",
    "shr": ">>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
    "fdiv": "/",
}
_PRECEDENCE = {"*": 5, "//": 5, "%": 5, "/": 5, "+": 4, "-": 4, "<<": 3, ">>": 3, "&": 2, "^": 1, "|": 0}
_LONGEST = 400
"""The most characters of one definition; longer ones are truncated."""
_DEEPEST = 12


class Origin:
    """An operation and its arguments; a name has no arguments."""

    __slots__ = ("args", "op")

    def __init__(self, op: str, *args: "Origin"):
        self.op, self.args = op, args


def describe(origin: Origin, names: Mapping[Origin, str]) -> str:
    """An expression, and below it a line for each of the kernel's variables in it."""
    defined: dict[str, Origin] = {}
    lines = [_text(origin, names, defined, own=True)]
    done: set[str] = set()
    while len(done) < len(defined) and len(lines) < _DEEPEST:
        name = next(name for name in defined if name not in done)
        done.add(name)
        text = _text(defined[name], names, defined, own=True)
        if text != name:
            lines.append(f"{name} = {text}")
    return "\n".join(lines)


def _text(origin: Origin, names: Mapping[Origin, str], defined: dict[str, Origin], own: bool = False) -> str:
    text = _formatted(origin, names, defined, own, 0)[0]
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def _formatted(
    origin: Origin, names: Mapping[Origin, str], defined: dict[str, Origin], own: bool, depth: int
) -> tuple[str, int]:
    """The text and its precedence: 9 never needs parentheses."""
    name = None if own else names.get(origin)
    if name is not None:
        defined.setdefault(name, origin)
        return name, 9
    if not origin.args:
        return origin.op, 9
    if depth > _DEEPEST:
        return "...", 9
    parts = [_formatted(arg, names, defined, False, depth + 1) for arg in origin.args]
    if origin.op == "then":
        return f"{parts[0][0]}, then {parts[1][0]} after each iteration", -2
    sign = _INFIX.get(origin.op)
    if sign is None or len(parts) != 2:
        return f"{origin.op}({', '.join(text for text, _ in parts)})", 9
    tight = _PRECEDENCE.get(sign, -1)
    (left, left_tight), (right, right_tight) = parts
    left = f"({left})" if left_tight < tight else left
    right = f"({right})" if right_tight <= tight else right
    return f"{left} {sign} {right}", tight
