"""Compare what a kernel left in memory with what its case says, and one run with another."""

import torch

from tests.triton_viz.corpus.case import Arguments, Case, tensors_of


def check_outputs(case: Case, after: Arguments) -> None:
    """Every tensor holds what the oracle says, and those it does not name what they held before."""
    before = case.fresh()
    wanted = {**tensors_of(before), **case.expected(before)}
    for name, got in tensors_of(after).items():
        if name not in case.scratch:
            assert got.dtype == wanted[name].dtype, f"{name}: the oracle gives {wanted[name].dtype}"
            torch.testing.assert_close(
                comparable(got),
                comparable(wanted[name]),
                rtol=case.rtol,
                atol=case.atol,
                equal_nan=True,
                msg=lambda text, name=name: f"{case.name}, {name}: {text}",
            )


def check_agreement(case: Case, one: Arguments, other: Arguments) -> None:
    """Two runs left the same bits, or numbers close to each other where the order of a sum is free."""
    others = tensors_of(other)
    for name, got in tensors_of(one).items():
        if name in case.scratch:
            continue
        if case.reorders:
            tolerance = {"rtol": case.rtol, "atol": case.atol}
            torch.testing.assert_close(comparable(got), comparable(others[name]), equal_nan=True, **tolerance)
        else:
            assert same_bits(got, others[name]), f"{case.name}, {name}: {got} is not {others[name]}"


def comparable(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers in a type that PyTorch compares."""
    narrow = tensor.dtype.is_floating_point and tensor.dtype.itemsize == 1
    if tensor.dtype in (torch.uint16, torch.uint32, torch.uint64):
        return tensor.contiguous().view(getattr(torch, f"int{tensor.dtype.itemsize * 8}"))
    return tensor.to(torch.float32) if narrow else tensor


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are alike to the last bit. Any NaN is like any other."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    bits_one, bits_other = (t.contiguous().reshape(-1).view(torch.uint8) for t in (one, other))
    same = (bits_one == bits_other).reshape(*one.shape, one.dtype.itemsize).all(-1)
    if one.dtype.is_floating_point:
        wide_one, wide_other = comparable(one), comparable(other)
        same |= wide_one.isnan() & wide_other.isnan()
    return bool(same.all())
