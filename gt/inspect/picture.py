"""A timeline as a PNG file: a lane for each client, the dispatcher and each worker. Drawn with Pillow."""

from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from gt.inspect.tape import EXCHANGES, Tape

WIDTH, LANE, NAMES, AXIS = 1400, 40, 150, 36
"""In pixels: the width of the picture, the height of a lane, the width of its name, the height of the
axis."""
_TEXT_SIZE = 12

_BACK, _TEXT, _LINE = "#ffffff", "#1b1f26", "#dfe3e8"
_HOT, _FAILED, _ARRIVED = "#fcd34d", "#c0182b", "#5a6372"
_ELEMENTWISE, _PRODUCT, _EXCHANGE = "#b44708", "#7434c9", "#b3195f"
_KINDS = {
    "ReduceOp": "#0b6b3a",
    "CreateTensor": "#1d5fd1",
    "GetData": "#1d5fd1",
    "FreeTensor": "#0f766e",
    "ShapeOp": "#0f766e",
    "Site": "#0f766e",
    **dict.fromkeys(EXCHANGES, _EXCHANGE),
}
_PRODUCTS = frozenset({"matmul", "linear", "bmm", "mm", "addmm", "conv1d", "conv2d", "einsum"})


def write_png(tape: Tape, path: Path) -> None:
    """Draw a tape, and write the picture to a file. Raises OSError if that fails."""
    draw(tape).save(path, "PNG")


def draw(tape: Tape) -> Image.Image:
    """The picture of a tape that has at least one entry."""
    lanes = [*tape.clients, "dispatcher", *tape.workers]
    picture = Image.new("RGB", (WIDTH, AXIS + LANE * len(lanes) + 8), _BACK)
    canvas = ImageDraw.Draw(picture)
    font = ImageFont.load_default(_TEXT_SIZE)
    first, last = tape.entries[0].elapsed, tape.entries[-1].elapsed
    length = max(last - first, 1e-9)
    tops = {name: AXIS + LANE * number for number, name in enumerate(lanes)}

    def across(time: float) -> int:
        return NAMES + int((time - first) / length * (WIDTH - NAMES - 20))

    def box(left: int, top: int, right: int, bottom: int, colour: str) -> None:
        """Fill a box, without its right and bottom edges."""
        canvas.rectangle((left, top, max(left, right - 1), bottom - 1), fill=colour)

    def fits(text: str, room: int) -> bool:
        return room > canvas.textlength(text, font) + 8

    for tick in range(6):
        time = first + length * tick / 5
        canvas.line((across(time), AXIS - 6, across(time), picture.height), fill=_LINE)
        canvas.text((across(time), 8), f"{time:.3f} s", _TEXT, font, anchor="ra" if tick == 5 else "la")
    for name, top in tops.items():
        canvas.line((0, top + LANE - 1, WIDTH, top + LANE - 1), fill=_LINE)
        canvas.text((6, top + LANE // 2), name[:20], _TEXT, font, anchor="lm")
    for band in tape.hot_paths:
        left, right, top = across(band.start), across(band.end), tops[band.worker]
        box(left, top + 1, max(left + 2, right), top + LANE - 2, _HOT)
        if not band.complete:
            box(max(left, right - 3), top + 1, max(left + 3, right), top + LANE - 2, _FAILED)
    for entry in tape.entries:
        role, _, name = entry.source.partition(" ")
        lane = "dispatcher" if entry.event == "WORKER_SEND" else name if role == "CLIENT" else None
        if lane is not None and entry.event != "LAYOUT":
            x, top = across(entry.elapsed), tops[lane]
            box(x, top + 12, x + 2, top + LANE - 12, _ARRIVED)
    for span in tape.spans:
        left, right, top = across(span.start), across(span.end), tops[span.worker]
        colour = _PRODUCT if span.label in _PRODUCTS else _KINDS.get(span.command, _ELEMENTWISE)
        gap = 1 if right - left > 4 else 0
        box(left, top + 6, max(left + 1, right - gap), top + LANE - 7, _FAILED if span.failed else colour)
        named = f"{span.label} · {span.module}" if span.module else span.label
        words = next((text for text in (named, span.label) if fits(text, right - left)), "")
        canvas.text((left + 4, top + LANE // 2), words, _BACK, font, anchor="lm")
    return picture
