"""Packed sequences: `torch.nn.utils.rnn.pack_padded_sequence`.

Sequences' lengths, and the batch sizes that follow from them, are on the CPU for tensors of every device.
"""

import torch


def pack_padded_sequence(
    input: torch.Tensor, lengths: torch.Tensor, batch_first: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """The kernel of `aten::_pack_padded_sequence`: the steps of all sequences, and how many each has."""
    steps = input.transpose(0, 1) if batch_first else input
    counts = lengths.tolist()
    if len(counts) != steps.shape[1]:
        raise RuntimeError(
            "Expected `len(lengths)` to be equal to batch_size, but got "
            f"{len(counts)} (batch_size={steps.shape[1]})"
        )
    if counts != sorted(counts, reverse=True):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement"
        )
    if not counts or counts[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    sizes = [sum(n > step for n in counts) for step in range(counts[0])]
    return torch.cat([steps[n, :size] for n, size in enumerate(sizes)]), torch.tensor(sizes, device="cpu")


KERNELS = {"_pack_padded_sequence": pack_padded_sequence}
"""By the name of the overload."""
