"""The nodes of expressions: atoms, sums of atoms, and conditions. `expression` makes them."""

INFINITE = 1 << 80
"""Larger than every integer of a kernel, and every address."""


class Atom:
    """A variable, or an operation that is not a sum."""

    __slots__ = ("args", "high", "low", "op", "serial")

    def __init__(self, op: str, args: tuple, low: int, high: int, serial: int):
        self.op, self.args = op, args
        self.low, self.high = low, high
        """The lower and upper bound of its value."""
        self.serial = serial

    def __repr__(self) -> str:
        return f"{self.op}{self.args}"


class Sum:
    """A constant, and multiples of atoms in the order of their serial numbers."""

    __slots__ = ("_hash", "const", "high", "low", "terms")

    def __init__(self, const: int, terms: tuple[tuple[Atom, int], ...] = ()):
        self.const, self.terms = const, terms
        low = high = const
        for atom, by in terms:
            if by > 0:
                low += by * atom.low
                high += by * atom.high
            else:
                low += by * atom.high
                high += by * atom.low
        self.low, self.high = low, high
        self._hash = hash((const, terms))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Sum) and self.const == other.const and self.terms == other.terms
        )

    def __repr__(self) -> str:
        return " + ".join([f"{by}*{atom}" for atom, by in self.terms] + [str(self.const)])

    @property
    def is_const(self) -> bool:
        """Whether it has no variables."""
        return not self.terms

    @property
    def single(self) -> Atom | None:
        """The atom, if the sum is only this atom; otherwise None."""
        return self.terms[0][0] if len(self.terms) == 1 and not self.const and self.terms[0][1] == 1 else None

    def coefficient(self, of: Atom) -> int:
        """The factor of an atom."""
        return next((by for atom, by in self.terms if atom is of), 0)

    def within(self, low: int, high: int) -> bool:
        """Whether its interval is within these bounds."""
        return low <= self.low and self.high <= high


class Cond:
    """A condition: "ge", "eq", "ne" compare a sum with zero; "and", "or" join conditions; "true", "false"."""

    __slots__ = ("args", "negation", "op", "serial")

    def __init__(self, op: str, args: tuple, serial: int):
        self.op, self.args, self.serial = op, args, serial
        self.negation: Cond | None = None

    def __repr__(self) -> str:
        return f"{self.op}{self.args}"

    @property
    def parts(self) -> tuple["Cond", ...]:
        """The conditions whose conjunction is this condition."""
        if self.op == "and":
            return self.args
        return () if self.op == "true" else (self,)


Node = Sum | Cond
