"""A timeline as a PNG file, drawn with NumPy alone: a lane each for clients, the dispatcher and workers."""

import struct
import zlib
from pathlib import Path

import numpy as np

from gt.tape import EXCHANGES, Tape

WIDTH, LANE, NAMES, AXIS = 1400, 40, 150, 36
_BACK, _TEXT, _LINE = (255, 255, 255), (27, 31, 38), (223, 227, 232)
_HOT = (252, 211, 77)
_FAILED, _ARRIVED = (192, 24, 43), (90, 99, 114)
_KINDS = {
    "BinaryOp": (180, 71, 8),
    "UnaryOp": (180, 71, 8),
    "TernaryOp": (180, 71, 8),
    "ReduceOp": (11, 107, 58),
    "CreateTensor": (29, 95, 209),
    "GetData": (29, 95, 209),
    "FreeTensor": (15, 118, 110),
    "ShapeOp": (15, 118, 110),
    "Site": (15, 118, 110),
    **dict.fromkeys(EXCHANGES, (179, 25, 95)),
}
_OTHER = (180, 71, 8)
_PRODUCT = (116, 52, 201)
_PRODUCTS = frozenset({"matmul", "linear", "bmm", "mm", "addmm", "conv1d", "conv2d", "einsum"})

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-/ "
# Each is five rows of three pixels, as five octal digits.
_PIXELS = """
25755 65656 34443 65556 74647 74644 34553 55755 72227 11152 55655 44447 57755 57775 25552 65644 25563 65655
34216 72222 55557 55522 55775 55255 55222 71247 75557 26227 61247 61216 55711 74616 34652 71222 25252 25316
00007 00002 02020 00700 11244 00000
"""
_GLYPHS = dict(zip(_LETTERS, _PIXELS.split(), strict=True))


def write_png(tape: Tape, path: Path) -> None:
    """Draw a tape, and write the picture."""
    path.write_bytes(_png(draw(tape)))


def draw(tape: Tape) -> np.ndarray:
    """The picture: (height, width, 3), a byte for each colour."""
    lanes = [*tape.clients, "dispatcher", *tape.workers]
    picture = np.full((AXIS + LANE * len(lanes) + 8, WIDTH, 3), _BACK, np.uint8)
    first, last = tape.entries[0].elapsed, tape.entries[-1].elapsed
    length = max(last - first, 1e-9)
    tops = {name: AXIS + LANE * number for number, name in enumerate(lanes)}

    def across(time: float) -> int:
        return NAMES + int((time - first) / length * (WIDTH - NAMES - 20))

    for tick in range(6):
        time = first + length * tick / 5
        picture[AXIS - 6 :, across(time)] = _LINE
        _write(picture, f"{time:.3f} s", across(time) - (60 if tick == 5 else 0), 8)
    for name, top in tops.items():
        picture[top + LANE - 1] = _LINE
        _write(picture, name[:20], 6, top + LANE // 2 - 5)
    for band in tape.hot_paths:
        left, right, top = across(band.start), across(band.end), tops[band.worker]
        picture[top + 1 : top + LANE - 2, left : max(left + 2, right)] = _HOT
        if not band.complete:
            picture[top + 1 : top + LANE - 2, max(left, right - 3) : max(left + 3, right)] = _FAILED
    for entry in tape.entries:
        role, _, name = entry.source.partition(" ")
        lane = "dispatcher" if entry.event == "WORKER_SEND" else name if role == "CLIENT" else None
        if lane is not None and entry.event != "LAYOUT":
            x, top = across(entry.elapsed), tops[lane]
            picture[top + 12 : top + LANE - 12, x : x + 2] = _ARRIVED
    for span in tape.spans:
        left, right, top = across(span.start), across(span.end), tops[span.worker]
        shade = _PRODUCT if span.label in _PRODUCTS else _KINDS.get(span.command, _OTHER)
        shade = _FAILED if span.failed else shade
        picture[top + 6 : top + LANE - 7, left : max(left + 1, right - (1 if right - left > 4 else 0))] = (
            shade
        )
        if right - left > 8 * len(span.label) + 8:
            _write(picture, span.label, left + 4, top + LANE // 2 - 5, _BACK)
    return picture


def _write(picture: np.ndarray, text: str, left: int, top: int, shade: tuple[int, int, int] = _TEXT) -> None:
    """Write a text, each pixel of a letter as two by two."""
    for place, letter in enumerate(text.upper()):
        for row, digit in enumerate(_GLYPHS.get(letter, _GLYPHS["-"])):
            for column in range(3):
                if int(digit, 8) >> (2 - column) & 1:
                    x, y = left + 8 * place + 2 * column, top + 2 * row
                    picture[y : y + 2, max(0, x) : x + 2] = shade


def _png(picture: np.ndarray) -> bytes:
    height, width, _ = picture.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
