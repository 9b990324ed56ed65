"""einsum, tensordot, and the products of `gt.nn.functional`: linear layers and attention."""

import math
import string
from typing import Any

from gt.errors import ShapeError
from gt.tensors.base import apply
from gt.tensors.functions.creation import full
from gt.tensors.functions.random_numbers import dropout
from gt.tensors.tensor import Tensor

__all__ = ["einsum", "tensordot"]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`."""
    return input._apply("linear", weight) if bias is None else input._apply("linear", weight, bias)


# --- sums of products over named indices ---


def einsum(equation: str, *operands: Any) -> Tensor:
    """Sums of products over dimensions that letters name: `einsum("ij,jk->ik", a, b)` is `a @ b`.

    Letters that the result does not have are summed over. `...` stands for all other dimensions, which
    are broadcast.
    """
    tensors = list(operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands)
    left, arrow, output = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(tensors):
        few = "fewer" if len(tensors) < len(terms) else "more"
        raise ShapeError(f"einsum(): {few} operands were provided than specified in the equation")
    for place, letter in enumerate(equation):
        if letter not in string.ascii_letters + ",.-> ":
            raise ShapeError(
                f"einsum(): invalid subscript given at index {place} in the equation string, subscripts must "
                "be in [a-zA-Z]"
            )
    letters, ellipsis = _spell_out(terms, tensors)
    if not arrow:
        # By default, the result has the letters that occur once, in alphabetical order.
        output = "..." + "".join(sorted(x for x in set(left) - set(",.") if left.count(x) == 1))
    output = output.replace("...", ellipsis)
    for letter in output:
        if not any(letter in term for term in letters):
            raise ShapeError(
                f"einsum(): output subscript {letter} does not appear in the equation for any input operand"
            )
        if output.count(letter) > 1:
            raise ShapeError(f"einsum(): output subscript {letter} appears more than once in the output")
    for number, term in enumerate(letters):
        letters[number], tensors[number] = _without_repeats(term, tensors[number])
    tensors = _broadcast(letters, tensors)
    return apply("einsum", tuple(tensors), {"equation": ",".join(letters) + "->" + output})


def _spell_out(terms: list[str], tensors: list[Tensor]) -> tuple[list[str], str]:
    """The terms with letters in place of `...`, and the letters of the longest `...`."""
    free = [letter for letter in string.ascii_letters if not any(letter in term for term in terms)]
    longest, spelled = 0, []
    for number, (term, x) in enumerate(zip(terms, tensors, strict=True)):
        named = len(term.replace("...", ""))
        if named > x.ndim or (named < x.ndim and "..." not in term):
            raise ShapeError(
                f"einsum(): the number of subscripts in the equation ({named}) does not match the number of "
                f"dimensions ({x.ndim}) for operand {number} and no ellipsis was given"
            )
        longest = max(longest, x.ndim - named if "..." in term else 0)
    ellipsis = "".join(free[:longest])
    for term, x in zip(terms, tensors, strict=True):
        missing = x.ndim - len(term.replace("...", ""))
        spelled.append(term.replace("...", ellipsis[longest - missing :]))
    return spelled, ellipsis


def _without_repeats(term: str, x: Tensor) -> tuple[str, Tensor]:
    """The term with one letter for each that occurs twice, which selects a diagonal."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            if x.shape[first] != x.shape[second]:
                raise ShapeError(
                    f"einsum(): subscript {letter} is repeated for operand with sizes {x.shape[first]} and "
                    f"{x.shape[second]}"
                )
            x = x.diagonal(0, first, second)
            term = (
                term.replace(letter, "") + letter
                if term.count(letter) == 2
                else (term[:first] + term[first + 1 : second] + term[second + 1 :] + letter)
            )
    return term, x


def _broadcast(terms: list[str], tensors: list[Tensor]) -> list[Tensor]:
    """The operands with dimensions of size 1 broadcast to the other operands' size of the same letter."""
    sizes: dict[str, int] = {}
    for number, (term, x) in enumerate(zip(terms, tensors, strict=True)):
        for letter, n in zip(term, x.shape, strict=True):
            seen = sizes.get(letter, 1)
            if n != 1 and seen not in (1, n):
                raise ShapeError(
                    f"einsum(): subscript {letter} has size {n} for operand {number} which does not "
                    f"broadcast with previously seen size {seen}"
                )
            sizes[letter] = n if seen == 1 else seen
    shapes = [tuple(sizes[letter] for letter in term) for term in terms]
    return [x if x.shape == shape else x.expand(shape) for x, shape in zip(tensors, shapes, strict=True)]


def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The sum of products over the last dimensions of a and the first of b, or over given pairs."""
    if isinstance(dims, int):
        left, right = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        left, right = ([d % x.ndim for d in side] for side, x in zip(dims, (a, b), strict=True))
    names = iter(string.ascii_letters)
    first = [next(names) for _ in range(a.ndim)]
    second = [first[left[right.index(d)]] if d in right else next(names) for d in range(b.ndim)]
    output = [x for d, x in enumerate(first) if d not in left]
    output += [x for d, x in enumerate(second) if d not in right]
    return einsum(f"{''.join(first)},{''.join(second)}->{''.join(output)}", a, b)


# --- attention ---


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """For each query, the mean of the values, weighted by the softmax of its scores with the keys.

    A boolean mask is true for the keys that a query attends to; a mask of numbers is added to the scores.
    With `is_causal`, each position attends to itself and to those before it.
    """
    scores = query @ (key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale))
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
            )
        scores = scores + full(scores.shape[-2:], -math.inf, scores.dtype).triu(1)
    blind = None
    if attn_mask is not None and attn_mask.dtype == "bool":
        blind = ~attn_mask.any(-1, keepdim=True)
        scores = scores.masked_fill(~(attn_mask | blind), -math.inf)
    elif attn_mask is not None:
        blind = (attn_mask == -math.inf).all(-1, keepdim=True)
        scores = scores + attn_mask.masked_fill(blind, 0)
    weights = scores.softmax(-1)
    if blind is not None:  # a query without any key gets zeros, where the softmax is NaN
        weights = weights.masked_fill(blind, 0)
    if dropout_p:
        weights = dropout(weights, dropout_p)
    return weights @ value
