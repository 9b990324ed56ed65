"""Functions of `gt.nn.functional` that select rows."""

from gt.tensors.tensor import Tensor


def embedding(index: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """The rows of `weight` at the indices. The row `padding_idx` gets no gradient."""
    rows = weight.shape[0] if weight.ndim else 0
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise ValueError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    return weight._apply("embedding", index, padding_idx=-1 if padding_idx is None else padding_idx)


def one_hot(x: Tensor, num_classes: int = -1) -> Tensor:
    """For each number n, a row of zeros with a 1 at position n.

    By default, the number of classes is one more than the largest n, which is read, so this waits for it.
    """
    if num_classes == -1:
        if not x.numel():
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        num_classes = int(x.detach().__array__().max()) + 1
    return x._apply("one_hot", num_classes=num_classes)
