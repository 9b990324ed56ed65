"""A compiled kernel's metadata, and the instructions of each line of source.

The compiled object needs an `asm` with texts by name (`ptx`, `ttgir`, `amdgcn`); its other attributes are
optional.
"""

import re
from pathlib import PurePath
from typing import Any

from triton_viz.clients.profiler.kernel_profile import Compiled, CompiledLine

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")
_GLOBAL = re.compile(r"\b(?:ld|st|atom|red)\.(?:[a-z_]+(?:::[a-z_]+)*\.)*global\b([\w.:]*)")
_ASYNC = re.compile(
    r"\bcp\.async\.\w+\.shared(?:::\w+)?\.global\S*\s+\[[^\]]*\],\s*\[[^\]]*\],\s*(?:0x)?([0-9a-f]+)"
)
_AMD = re.compile(
    r"\b(?:global|buffer|flat)_(?:load|store)_(?:lds_)?(?:d16_(?:hi_)?)?"
    r"(?:dword(?:x(\d))?|[bui](\d+)|[us]?(byte|short))(?:_d16(?:_hi)?)?\b"
)
_LOC_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)\s*$")
_LOC_USED = re.compile(r"loc\((#loc\d*)\)\s*$")
_LOC_POSITION = re.compile(r'"([^"]+)":(\d+):\d+')
_SPILLED = ("n_spills", "spills", "spill_bytes")
_REGISTERS = ("n_regs", "registers", "num_registers")

_NO_INSTRUCTION = (".", "$", "{", "}")
_END_OF_CODE = (".section", ".end_amdhsa_kernel", ".amdgpu_metadata", ".cfi_endproc")
"""Directives after which instructions do not belong to the previous line."""

SourceLine = tuple[str, int]


def compiled_of(compiled: Any, target: str, file: str) -> Compiled | None:
    """The metadata and lines of a compiled kernel; None without a compiled kernel.

    `compiled` may be the error of the compiler for `target`. A kernel from Triton's cache may name the file
    of another folder.
    """
    if isinstance(compiled, Exception):
        return Compiled(
            target=target, error=str(compiled), registers=None, spills=None, shared=None, warps=None, lines=()
        )
    asm = getattr(compiled, "asm", None)
    if not asm:
        return None
    metadata = getattr(compiled, "metadata", None)
    language = "amdgcn" if "amdgcn" in asm else "ptx"
    instructions, widths = _instructions(asm.get(language) or "")
    ttgir = _ttgir(asm.get("ttgir") or "")
    source_lines = sorted(set(instructions) | set(ttgir))
    return Compiled(
        target=_target(getattr(compiled, "target", None) or getattr(metadata, "target", None)) or target,
        language=language,
        registers=_number((compiled, metadata), _REGISTERS),
        spills=_number((compiled, metadata), _SPILLED),
        shared=_number((compiled, metadata), ("shared", "shared_memory")),
        warps=_number((compiled, metadata), ("num_warps", "warps")),
        lines=tuple(
            CompiledLine(
                file=file if PurePath(source_line[0]).name == PurePath(file).name else source_line[0],
                line=source_line[1],
                instructions=tuple(instructions.get(source_line, ())),
                ttgir=tuple(ttgir.get(source_line, ())),
                widths=tuple(widths.get(source_line, ())),
            )
            for source_line in source_lines
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


def _instructions(text: str) -> tuple[dict[SourceLine, list[str]], dict[SourceLine, list[int]]]:
    """For each line of source: its instructions, and the widths of its accesses to global memory."""
    files = {}
    for line in text.splitlines():
        if named := _FILE.match(line):
            number, folder, name = named.groups()
            files[number] = f"{folder}/{name}" if name else folder
    found: dict[SourceLine, list[str]] = {}
    widths: dict[SourceLine, list[int]] = {}
    source_line: SourceLine | None = None
    inline = False
    for raw in text.splitlines():
        line = raw.split("//")[0].split(";")[0].strip() if "inline asm" not in raw else raw.strip()
        if "inline asm" in line:
            inline = "begin" in line
            continue
        if at := _LOC.match(raw):
            # The assembler reports lines of inline assembly as lines of the kernel.
            if not inline:
                number = int(at[2])  # 0: instructions that the compiler added
                source_line = (files.get(at[1], at[1]), number) if number else None
            continue
        if line.startswith(_END_OF_CODE):
            source_line = None
        if source_line is None or line.startswith(_NO_INSTRUCTION) or line.endswith(":") or not line:
            continue
        found.setdefault(source_line, []).append(line)
        if width := _width(line):
            widths.setdefault(source_line, []).append(width)
    return found, widths


def _width(instruction: str) -> int:
    """The bytes that an access to global memory moves for one thread; 0 for other instructions."""
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


def _ttgir(text: str) -> dict[SourceLine, list[str]]:
    """For each line of source: the ops of Triton's GPU dialect."""
    aliases = {found[1]: found[2] for line in text.splitlines() if (found := _LOC_ALIAS.match(line))}

    def source_line(alias: str, depth: int = 0) -> SourceLine | None:
        body = aliases.get(alias, "")
        if at := _LOC_POSITION.search(body):
            return at[1], int(at[2])
        inner = re.search(r"#loc\d*", body)
        return source_line(inner[0], depth + 1) if inner and depth < 32 else None

    ops: dict[SourceLine, list[str]] = {}
    for line in text.splitlines():
        used = _LOC_USED.search(line)
        op = line[: used.start()].strip() if used else ""
        if used and op and op != "}" and (at := source_line(used[1])) is not None:
            ops.setdefault(at, []).append(op)
    return ops
