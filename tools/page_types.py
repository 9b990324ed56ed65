"""Write what the server sends as TypeScript, from the structs that it is made of.

    python -m tools.page_types      # rewrites frontend/src/payloads/

A test compares the files with what this would write, so the two sides cannot part.
"""

import types
import typing
from pathlib import Path
from typing import Any

import msgspec

from triton_viz.visualizer.payloads import PAYLOADS

FOLDER = Path(__file__).parents[1] / "frontend" / "src" / "payloads"
_HEAD = """\
// What the server sends. Written by `python -m tools.page_types` from triton_viz/visualizer/payloads.py:
// change it there. GLOSSARY.md says what each field means.
"""
_PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null", Any: "unknown"}


def typescript() -> dict[str, str]:
    """The text of each file, by its name."""
    files = {}
    for module, payloads in PAYLOADS.items():
        written: dict[str, str] = {}
        for payload in payloads:
            _write(payload, written)
        files[f"{module}.ts"] = _HEAD + "".join(written.values())
    return files


def _write(struct: type[msgspec.Struct], written: dict[str, str]) -> None:
    """One struct, after those that it holds."""
    if struct.__name__ in written:
        return
    written[struct.__name__] = ""  # its place, also where structs hold each other
    lines = [f"  {name}: {_type(hint, written)};" for name, hint in typing.get_type_hints(struct).items()]
    doc = (struct.__doc__ or "").strip().splitlines()[0]
    text = "\n".join(["", f"/** {doc} */", f"export interface {struct.__name__} {{", *lines, "}", ""])
    del written[struct.__name__]
    written[struct.__name__] = text


def _type(hint: Any, written: dict[str, str]) -> str:
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        names = [_type(one, written) for one in inner]
        return " | ".join(dict.fromkeys(names))
    if origin is list or (origin is tuple and inner[-1] is Ellipsis):
        name = _type(inner[0], written)
        return f"({name})[]" if "|" in name else f"{name}[]"
    if origin is tuple:
        return f"[{', '.join(_type(one, written) for one in inner)}]"
    if origin is dict:
        return f"Record<string, {_type(inner[1], written)}>"
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        _write(hint, written)
        return hint.__name__
    raise TypeError(f"the page has no type for {hint}")


if __name__ == "__main__":
    texts = typescript()
    for path in FOLDER.iterdir():
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (FOLDER / name).write_text(text)
    print(f"{FOLDER.relative_to(FOLDER.parents[2])}: {', '.join(texts)}")
