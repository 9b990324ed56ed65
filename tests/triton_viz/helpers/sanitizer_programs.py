"""Generated kernels with pointers to one of two tensors, loop-carried pointers, and indices from data."""

from hypothesis import strategies as st

from tests.triton_viz.helpers.generating import indented

FAR = 100_000
"""No generated access is further from a tensor's first element than this."""

HEAD = """
import triton
import triton.language as tl


@triton.jit
def read(p, at, n):
    if n > 3:
        return tl.load(p + at)
    return tl.load(p + n)


@triton.jit
def moved(p, by):
    if by > 2:
        return p
    return p + by


@triton.jit
def kernel(x, y, data, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    a = pid * 7 % 5
    b = n
    d = tl.load(data + pid)
    w = tl.load(data + lane)
    p = x + pid
    q = y + lane
    r = x + lane[:, None] * 3 + lane[None, :]
"""
NUMBERS = [
    "pid",
    "a",
    "b",
    "n",
    "d",
    "0",
    "1",
    "5",
    "-1",
    "a * n % 50",
    "d % 7",
    "tl.sum(w, 0) % 30",
    "tl.max(w, 0)",
]
BLOCKS = [
    "lane",
    "w",
    "lane * 2",
    "lane * b",
    "BLOCK - 1 - lane",
    "w + pid",
    "tl.cumsum(w, 0) % 40",
    "lane % 3",
]
CONDITIONS = ["a > 2", "pid == 3", "d < 2", "n > 3", "pid % 2 == 0", "tl.max(w, 0) > 3", "a > b"]
MOVES = [
    "p = x + {number}",
    "p = y + {number}",
    "p = x if {condition} else y",
    "p += {number}",
    "p = moved(p, {number})",
    "q += {block}",
    "q = p + {block}",
    "q = tl.where(lane < {number}, p + {block}, p - {block})",
    "q = tl.where({condition}, x + {block}, y + {block})",
    "r += {number}",
    "r = p + lane[:, None] * {number} + lane[None, :]",
    "a = {number}",
    "b = {number}",
    "a += 1",
    "w = {block}",
]
ACCESSES = [
    "tl.load(p)",
    "tl.load(p + {number})",
    "tl.store(p + {number}, a)",
    "tl.load(q)",
    "tl.load(q, mask={mask})",
    "tl.store(q + {number}, lane, mask={mask})",
    "tl.load(r)",
    "tl.load(r, mask=(lane < {number})[:, None] & (lane < b)[None, :])",
    "tl.store(r, r.to(tl.int64).to(tl.int32), mask=(lane < a)[:, None])",
    "tl.atomic_add(p + {number}, 1)",
    "tl.atomic_max(q, lane, mask={mask})",
    "read(p, {number}, {number})",
    "read(x, {number}, b); read(y, b, {number})",
    "tl.load(x + w, mask=(w >= 0) & (w < {number}))",
    "tl.load(x + (tl.argmax(w, 0) + {number}))",
]
MASKS = ["lane < {number}", "lane < 2", "w < b", "(lane >= a) & (w != {number})", "w > {number}"]


def filled(templates: list[str]) -> st.SearchStrategy[str]:
    """A template with its placeholders filled in."""

    @st.composite
    def one(draw: st.DrawFn) -> str:
        text = draw(st.sampled_from(templates))
        for blank, choices in (
            ("{mask}", MASKS),
            ("{condition}", CONDITIONS),
            ("{number}", NUMBERS),
            ("{block}", BLOCKS),
        ):
            while blank in text:
                choice = draw(st.sampled_from(choices))
                text = text.replace(blank, choice if blank in ("{mask}", "{condition}") else f"({choice})", 1)
        return text

    return one()


@st.composite
def bodies(draw: st.DrawFn, depth: int, in_loop: bool) -> list[str]:
    """A block of statements."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        kinds = ["move", "move", "access", "access"] + ["if", "for", "for", "while"] * (depth > 0)
        kind = draw(st.sampled_from(kinds + ["return"] * (depth < 2) + ["break", "continue"] * in_loop))
        if kind == "move":
            lines.append(draw(filled(MOVES)))
        elif kind == "access":
            lines.append(draw(filled(ACCESSES)))
        elif kind == "if":
            lines += [f"if {draw(st.sampled_from(CONDITIONS))}:", *indented(draw(bodies(depth - 1, in_loop)))]
            if draw(st.booleans()):
                lines += ["else:", *indented(draw(bodies(depth - 1, in_loop)))]
        elif kind == "for":
            items = draw(
                st.sampled_from(
                    ["range(n)", "range(a)", "range(0, 20, 3)", "range(pid, 6)", "tl.static_range(3)"]
                )
            )
            lines += [f"for i{depth} in {items}:", *indented(draw(bodies(depth - 1, "static" not in items)))]
        elif kind == "while":
            lines += [
                f"left{depth} = {draw(st.sampled_from(['4', 'n', 'pid + 1']))}",
                f"while left{depth} > 0:",
            ]
            lines += indented([f"left{depth} -= 1", *draw(bodies(depth - 1, True))])
        else:
            lines.append(kind)
    return lines


def kernels() -> st.SearchStrategy[str]:
    """The text of a module with a kernel."""
    return bodies(2, False).map(lambda lines: HEAD + "\n".join(indented(lines)) + "\n")
