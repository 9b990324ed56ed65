"""What the compiler made of a kernel: numbers from its metadata, and the instructions behind each line.

Whatever compiled it, it needs an `asm` with texts by name (`ptx`, `ttgir`, `amdgcn`); the rest is taken if it
is there.
"""

import re
from pathlib import PurePath
from typing import Any

from triton_viz.clients.profiler.data import Compiled, CompiledLine

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_PLACE = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")
_GLOBAL = re.compile(r"\b(?:ld|st|atom|red)\.(?:[a-z_]+(?:::[a-z_]+)*\.)*global\b([\w.:]*)")
_ASYNC = re.compile(
    r"\bcp\.async\.\w+\.shared(?:::\w+)?\.global\S*\s+\[[^\]]*\],\s*\[[^\]]*\],\s*(?:0x)?([0-9a-f]+)"
)
_AMD = re.compile(r"\b(?:global|buffer)_(?:load|store)_(?:dword(?:x(\d))?|b(\d+)|u?(byte|short))\b")
_LOC_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)\s*$")
_LOC_USED = re.compile(r"loc\((#loc\d*)\)\s*$")
_LOC_PLACE = re.compile(r'"([^"]+)":(\d+):\d+')
_SPILLED = ("n_spills", "spills", "spill_bytes")
_REGISTERS = ("n_regs", "registers", "num_registers")

_NO_INSTRUCTION = (".", "$", "{", "}")

Place = tuple[str, int]


def compiled_of(compiled: Any, target: str | None, file: str) -> Compiled | None:
    """The numbers and lines of a kernel that a file defines, compiled; None if there are none.

    Triton's cache gives the same kernel in another folder the lines of that folder's file.
    """
    asm = getattr(compiled, "asm", None)
    if not asm:
        return None
    metadata = getattr(compiled, "metadata", None)
    instructions, widths = _instructions(asm.get("ptx") or asm.get("amdgcn") or "")
    ttgir = _ttgir(asm.get("ttgir") or "")
    places = sorted(set(instructions) | set(ttgir))
    return Compiled(
        target=target or _target(getattr(metadata, "target", None)),
        registers=_number((compiled, metadata), _REGISTERS),
        spills=_number((compiled, metadata), _SPILLED),
        shared=_number((compiled, metadata), ("shared", "shared_memory")),
        warps=_number((compiled, metadata), ("num_warps", "warps")),
        lines=tuple(
            CompiledLine(
                file=file if PurePath(place[0]).name == PurePath(file).name else place[0],
                line=place[1],
                ptx=tuple(instructions.get(place, ())),
                ttgir=tuple(ttgir.get(place, ())),
                widths=tuple(widths.get(place, ())),
            )
            for place in places
        ),
    )


def _target(target: Any) -> str:
    """`cuda:90`."""
    return f"{target.backend}:{target.arch}" if hasattr(target, "backend") else str(target or "")


def _number(owners: tuple[Any, ...], names: tuple[str, ...]) -> int | None:
    for owner in owners:
        for name in names:
            value = getattr(owner, name, None)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
    return None


def _instructions(text: str) -> tuple[dict[Place, list[str]], dict[Place, list[int]]]:
    """For each line of source its instructions, and how wide its accesses to global memory are."""
    files = {}
    for line in text.splitlines():
        if named := _FILE.match(line):
            number, folder, name = named.groups()
            files[number] = f"{folder}/{name}" if name else folder
    found: dict[Place, list[str]] = {}
    widths: dict[Place, list[int]] = {}
    place: Place | None = None
    inline = False
    for raw in text.splitlines():
        line = raw.split("//")[0].split(";")[0].strip() if "inline asm" not in raw else raw.strip()
        if "inline asm" in line:
            inline = "begin" in line
            continue
        if at := _PLACE.match(raw):
            # The assembler counts lines of inline assembly as if they were lines of the kernel.
            if not inline:
                place = files.get(at[1], at[1]), int(at[2])
            continue
        if place is None or line.startswith(_NO_INSTRUCTION) or line.endswith(":") or not line:
            continue
        found.setdefault(place, []).append(line)
        if width := _width(line):
            widths.setdefault(place, []).append(width)
    return found, widths


def _width(instruction: str) -> int:
    """The bytes that an access to global memory moves for one thread; 0 if it is none."""
    if copied := _ASYNC.search(instruction):
        return int(copied[1], 16 if "0x" in instruction else 10)
    if amd := _AMD.search(instruction):
        words, bits, small = amd.groups()
        return {"byte": 1, "short": 2}[small] if small else int(bits) // 8 if bits else 4 * int(words or 1)
    accessed = _GLOBAL.search(instruction)
    if accessed is None:
        return 0
    parts = accessed[1].split(".")
    count = next((int(part[1:]) for part in parts if re.fullmatch(r"v[248]", part)), 1)
    bits = next((int(part[1:]) for part in reversed(parts) if re.fullmatch(r"[bufs]\d+", part)), 0)
    return count * bits // 8


def _ttgir(text: str) -> dict[Place, list[str]]:
    """For each line of source the ops of Triton's GPU dialect."""
    aliases = {found[1]: found[2] for line in text.splitlines() if (found := _LOC_ALIAS.match(line))}

    def place(alias: str, depth: int = 0) -> Place | None:
        body = aliases.get(alias, "")
        if at := _LOC_PLACE.search(body):
            return at[1], int(at[2])
        inner = re.search(r"#loc\d*", body)
        return place(inner[0], depth + 1) if inner and depth < 32 else None

    ops: dict[Place, list[str]] = {}
    for line in text.splitlines():
        used = _LOC_USED.search(line)
        op = line[: used.start()].strip() if used else ""
        if used and op and op != "}" and (at := place(used[1])) is not None:
            ops.setdefault(at, []).append(op)
    return ops
