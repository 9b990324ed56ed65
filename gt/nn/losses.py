"""Losses as modules: the functions of `gt.nn.functional` with fixed settings."""

from typing import Any

from gt.nn import functional
from gt.nn.module import Module
from gt.tensors.tensor import Tensor

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "NLLLoss",
    "SmoothL1Loss",
]


class _Loss(Module):
    """A loss: `loss(input, target)`."""

    def __init__(self, reduction: str = "mean", **settings: Any) -> None:
        super().__init__()
        self.reduction = reduction
        self._settings = settings

    def extra_repr(self) -> str:
        """The settings that are printed: those that are not tensors."""
        plain = {name: value for name, value in self._settings.items() if isinstance(value, int | float)}
        return ", ".join(
            f"{name}={value!r}" for name, value in {"reduction": self.reduction, **plain}.items()
        )


class MSELoss(_Loss):
    """The mean of the squared differences."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return functional.mse_loss(input, target, self.reduction)


class L1Loss(_Loss):
    """The mean of the absolute differences."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return functional.l1_loss(input, target, self.reduction)


class SmoothL1Loss(_Loss):
    """Squared differences where they are small, absolute ones where they are large."""

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction, beta=beta)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return functional.smooth_l1_loss(input, target, self.reduction, **self._settings)


class HuberLoss(_Loss):
    """The smooth L1 loss, times delta."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction, delta=delta)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return functional.huber_loss(input, target, self.reduction, **self._settings)


class CrossEntropyLoss(_Loss):
    """The cross entropy of a softmax over scores and the true class."""

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction, ignore_index=ignore_index, label_smoothing=label_smoothing)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return functional.cross_entropy(
            input,
            target,
            self.weight,  # type: ignore[attr-defined] - a buffer
            reduction=self.reduction,
            **self._settings,
        )


class NLLLoss(_Loss):
    """Minus the log-probability of the true class."""

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction, ignore_index=ignore_index)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return functional.nll_loss(
            input,
            target,
            self.weight,  # type: ignore[attr-defined] - a buffer
            reduction=self.reduction,
            **self._settings,
        )


class BCELoss(_Loss):
    """The binary cross entropy of probabilities and targets."""

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        weight = self.weight  # type: ignore[attr-defined] - a buffer
        return functional.binary_cross_entropy(input, target, weight, self.reduction)


class BCEWithLogitsLoss(_Loss):
    """The binary cross entropy of the sigmoid of scores, and targets."""

    def __init__(
        self, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None
    ) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        weight, pos_weight = self.weight, self.pos_weight  # type: ignore[attr-defined] - buffers
        return functional.binary_cross_entropy_with_logits(input, target, weight, self.reduction, pos_weight)


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence of log-probabilities from the target's probabilities."""

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction, log_target=log_target)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return functional.kl_div(input, target, self.reduction, **self._settings)
