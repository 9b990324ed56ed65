"""Atomics over lanes, with the result of running the programs one after the other."""

from collections.abc import Callable

import numpy as np

_COMBINE: dict[str, np.ufunc] = {
    "ADD": np.add,
    "FADD": np.add,
    "MIN": np.minimum,
    "UMIN": np.minimum,
    "MAX": np.maximum,
    "UMAX": np.maximum,
    "AND": np.bitwise_and,
    "OR": np.bitwise_or,
    "XOR": np.bitwise_xor,
}


def apply(
    op: str,
    addresses: np.ndarray,
    operands: tuple[np.ndarray, ...],
    read: Callable[[np.ndarray], np.ndarray],
    write: Callable[[np.ndarray, np.ndarray], None],
    rounded: Callable[[np.ndarray], np.ndarray] | None = None,
) -> np.ndarray:
    """Apply an op to addresses in order; each sees the results of those before it.

    The arrays are flat. Returns the value that each found. `rounded` rounds a sum to a type that NumPy lacks.
    """
    order = np.argsort(addresses, kind="stable")
    ordered = addresses[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    positions = ordered[starts]
    values = tuple(operand[order] for operand in operands)
    found = np.empty_like(values[-1])
    now = read(positions).astype(found.dtype, copy=False)
    if len(positions) == len(ordered):
        found[order] = now
        write(positions, _combine(op, now, values, rounded))
        return found
    counts = np.diff(np.r_[starts, len(ordered)])
    before = np.empty_like(found)
    ufunc = _COMBINE.get(op)
    if ufunc is not None and rounded is None and len(positions) <= counts.max():
        # Few addresses, each often: one address after the other.
        now = now.copy()
        for position, (start, count) in enumerate(zip(starts, counts, strict=True)):
            steps = np.concatenate([now[position : position + 1], values[0][start : start + count]])
            states = ufunc.accumulate(steps, dtype=found.dtype)
            before[start : start + count], now[position] = states[:-1], states[-1]
    else:
        # Many addresses: all first visits, then all second ones, and so on.
        now = now.copy()
        for visit in range(int(counts.max())):
            visited = np.flatnonzero(counts > visit)
            at = starts[visited] + visit
            before[at] = now[visited]
            now[visited] = _combine(op, now[visited], tuple(v[at] for v in values), rounded)
    found[order] = before
    write(positions, now)
    return found


def _combine(
    op: str,
    now: np.ndarray,
    operands: tuple[np.ndarray, ...],
    rounded: Callable[[np.ndarray], np.ndarray] | None,
) -> np.ndarray:
    if op == "XCHG":
        return operands[0]
    if op == "CAS":
        expected, new = operands
        bits = f"u{now.dtype.itemsize}"  # -0.0 is not 0.0 here, and a NaN is itself
        return np.where(now.view(bits) == expected.view(bits), new, now)
    result = _COMBINE[op](now, operands[0])
    return rounded(result) if rounded is not None else result
