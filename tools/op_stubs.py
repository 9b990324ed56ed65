"""Type stubs of the methods and functions that `gt.tensors.api` makes: for type checkers and editors.

`python -m tools.op_list` writes them; a test compares the files with what is made.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gt.tensors.api import FUNCTIONS
from gt.tensors.generated.in_place import GeneratedInPlace
from gt.tensors.generated.methods import GeneratedMethods

FOLDER = Path(__file__).parents[1] / "gt/tensors/generated"
WIDTH = 110

HEAD = """# fmt: off
\"\"\"Written by `python -m tools.op_list`.\"\"\"
"""

IMPORTS = """from collections.abc import Sequence
from typing import Any, SupportsIndex

from gt.tensors.base import Number, TensorBase
from gt.tensors.methods.indexing import Sorted
from gt.tensors.tensor import Tensor
"""


def _annotation(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    text = re.sub(r"\b(typing|collections\.abc|gt\.[a-z_.]+)\.", "", inspect.formatannotation(annotation))
    return re.sub(r" \| None \| (\w+)$", r" | \1 | None", text)


def _parameter(parameter: inspect.Parameter) -> str:
    star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = f"{star}{parameter.name}: {_annotation(parameter.annotation)}"
    if parameter.default is parameter.empty:
        return text
    default = f'"{parameter.default}"' if isinstance(parameter.default, str) else repr(parameter.default)
    return f"{text} = {default}"


def _parameters(parameters: list[inspect.Parameter], first: str) -> list[str]:
    parts, star = [first], False
    for parameter in parameters:
        star |= parameter.kind is parameter.VAR_POSITIONAL
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        parts.append(_parameter(parameter))
    return parts


def _definition(name: str, function: Callable[..., Any], first: str, doc: str, indent: str) -> Iterator[str]:
    """One function, with lines of at most WIDTH characters."""
    signature = inspect.signature(function)
    parts = _parameters(list(signature.parameters.values())[1:], first)
    returned = _annotation(signature.return_annotation)
    ignored = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
    end = ":" if doc else ": ..."
    line = f"{indent}def {name}({', '.join(parts)}) -> {returned}{end}{ignored}"
    if len(line) <= WIDTH:
        yield line
    else:
        inner = f"{indent}    {', '.join(parts)}"
        yield f"{indent}def {name}("
        yield from [inner] if len(inner) <= WIDTH else [f"{indent}    {part}," for part in parts]
        yield f"{indent}) -> {returned}{end}{ignored}"
    if doc:
        yield from _docstring(doc, indent + "    ")


def _docstring(doc: str, indent: str) -> Iterator[str]:
    lines = inspect.cleandoc(doc).splitlines()
    yield f'{indent}"""{lines[0]}' + ('"""' if len(lines) == 1 else "")
    if len(lines) > 1:
        yield from (f"{indent}{line}".rstrip() for line in lines[1:])
        yield f'{indent}"""'


def _class(part: type) -> str:
    lines = [f"class {part.__name__}(TensorBase):", f'    """{part.__doc__}"""', ""]
    members = {
        name: value
        for name, value in vars(part).items()
        if callable(value) and not (name.startswith("_") and not name.startswith("__"))
    }
    named = {id(function): name for name, function in members.items() if function.__name__ == name}
    aliases = []
    for name, function in sorted(members.items()):
        if named.get(id(function), name) != name:
            aliases.append(f"    {name} = {named[id(function)]}")
            continue
        doc = "" if name.startswith("__") else function.__doc__ or ""
        lines += _definition(name, function, "self", doc, "    ")
    if "__eq__" in members:
        lines.append("    def __hash__(self) -> int: ...")
    return "\n".join([*lines, *aliases]) + "\n"


def _functions() -> str:
    lines, aliases = [], []
    named = {id(method): name for name, (method, _) in FUNCTIONS.items() if method.__name__ == name}
    for name, (method, number_first) in sorted(FUNCTIONS.items()):
        own = named.get(id(method), name)
        if own != name:
            aliases.append(f"{name} = {own}")
            continue
        first = "input: Tensor | Number" if number_first else "input: Tensor"
        lines += _definition(name, method, first, method.__doc__ or "", "")
    return "\n".join([*lines, "", *aliases]) + "\n"


def written() -> dict[Path, str]:
    """The text of each stub."""
    bodies = {
        "methods": _class(GeneratedMethods),
        "in_place": _class(GeneratedInPlace),
        "functions": _functions(),
    }
    return {FOLDER / f"{name}.pyi": f"{HEAD}\n{_imports(body)}\n{body}" for name, body in bodies.items()}


def _imports(body: str) -> str:
    """The imports that a stub needs."""
    lines = []
    for line in IMPORTS.splitlines():
        if not line:
            lines.append("")
            continue
        start, _, names = line.partition(" import ")
        used = [name for name in names.split(", ") if re.search(rf"\b{name}\b", body)]
        if used:
            lines.append(f"{start} import {', '.join(used)}")
    return "\n".join(lines).strip("\n") + "\n"
