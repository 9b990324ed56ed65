"""Learning-rate schedules.

    scheduler = gt.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=1000)
    ...
    optimizer.step()
    scheduler.step()

Each schedule is a formula for the rate at a step, from the rate at the start. So it can be resumed at any
step; changes of the optimizer's rate by other code are overwritten.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gt.optim.optimizers import Optimizer

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "OneCycleLR",
    "SequentialLR",
    "StepLR",
]


class LRScheduler:
    """Base class: counts steps, and sets every group's rate. A subclass implements `rate`."""

    def __init__(self, optimizer: "Optimizer", last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        self.last_epoch = last_epoch
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    "param 'initial_lr' is not specified in a parameter group when resuming an optimizer"
                )
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self.step()

    def rate(self, base: float, step: int, group: int) -> float:
        """The learning rate at a step of a group whose rate was `base` at the start."""
        raise NotImplementedError

    def step(self) -> None:
        """Advance by one step, and set the learning rates."""
        self.last_epoch += 1
        self._set()

    def _set(self) -> None:
        for number, (group, base) in enumerate(zip(self.optimizer.param_groups, self.base_lrs, strict=True)):
            group["lr"] = self.rate(base, self.last_epoch, number)

    def get_last_lr(self) -> list[float]:
        """The learning rate of each group now."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The state that a checkpoint needs: the current step, and the first rates."""
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a `state_dict()`."""
        self.last_epoch = state_dict["last_epoch"]
        self.base_lrs = list(state_dict["base_lrs"])
        self._set()


class StepLR(LRScheduler):
    """The rate is multiplied by gamma after every `step_size` steps."""

    def __init__(
        self, optimizer: "Optimizer", step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int, group: int) -> float:
        """The learning rate at a step."""
        return base * self.gamma ** (step // self.step_size)


class MultiStepLR(LRScheduler):
    """The rate is multiplied by gamma after each milestone."""

    def __init__(
        self, optimizer: "Optimizer", milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int, group: int) -> float:
        """The learning rate at a step."""
        return base * self.gamma ** sum(milestone <= step for milestone in self.milestones)


class ExponentialLR(LRScheduler):
    """The rate is multiplied by gamma after every step."""

    def __init__(self, optimizer: "Optimizer", gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int, group: int) -> float:
        """The learning rate at a step."""
        return base * self.gamma**step


class ConstantLR(LRScheduler):
    """A fraction of the rate for the first steps."""

    def __init__(
        self, optimizer: "Optimizer", factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int, group: int) -> float:
        """The learning rate at a step."""
        return base * (self.factor if step < self.total_iters else 1)


class LinearLR(LRScheduler):
    """The rate changes linearly from one fraction of it to another, as in a warm-up."""

    def __init__(
        self,
        optimizer: "Optimizer",
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int, group: int) -> float:
        """The learning rate at a step."""
        done = min(step / self.total_iters, 1)
        return base * (self.start_factor + (self.end_factor - self.start_factor) * done)


class CosineAnnealingLR(LRScheduler):
    """The rate falls to `eta_min` along half a cosine in `T_max` steps, and rises again after them."""

    def __init__(
        self, optimizer: "Optimizer", T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int, group: int) -> float:
        """The learning rate at a step."""
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * step / self.T_max)) / 2


class LambdaLR(LRScheduler):
    """The rate is multiplied by a function of the step: one function, or one for each group."""

    def __init__(
        self,
        optimizer: "Optimizer",
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        count = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, Sequence) else [lr_lambda] * count
        if len(self.lr_lambdas) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int, group: int) -> float:
        """The learning rate at a step."""
        return base * self.lr_lambdas[group](step)


class OneCycleLR(LRScheduler):
    """The rate rises to `max_lr` and falls to almost 0 in `total_steps` steps; momentum does the opposite."""

    def __init__(
        self,
        optimizer: "Optimizer",
        max_lr: float,
        total_steps: int,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self.total_steps, self.linear, self.cycle_momentum = (
            total_steps,
            anneal_strategy == "linear",
            cycle_momentum,
        )
        first, last = max_lr / div_factor, max_lr / div_factor / final_div_factor
        top, end = pct_start * total_steps - 1, total_steps - 1
        # The points between which rate and momentum are interpolated: step, rate, momentum.
        low, high = base_momentum, max_momentum
        self.corners = [(0, first, high), (top, max_lr, low)]
        if three_phase:
            self.corners.append((2 * top, first, high))
        self.corners.append((end, last, high))
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group["initial_lr"] = first
        super().__init__(optimizer, last_epoch)

    def _between(self, step: int, column: int) -> float:
        if step >= self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is {self.total_steps}"
            )
        for start, end in itertools.pairwise(self.corners):
            if step <= end[0] or end is self.corners[-1]:
                done = (step - start[0]) / (end[0] - start[0])
                done = done if self.linear else (1 - math.cos(math.pi * done)) / 2
                return start[column] + (end[column] - start[column]) * done
        raise AssertionError("the last point is the last step")

    def rate(self, base: float, step: int, group: int) -> float:
        """The learning rate at a step."""
        return self._between(step, 1)

    def _set(self) -> None:
        super()._set()
        if self.cycle_momentum:
            momentum = self._between(self.last_epoch, 2)
            for group in self.optimizer.param_groups:
                if "betas" in group:
                    group["betas"] = (momentum, *group["betas"][1:])
                else:
                    group["momentum"] = momentum


class SequentialLR(LRScheduler):
    """Several schedules in a row, such as a warm-up and then a cosine; they change at the milestones."""

    def __init__(
        self,
        optimizer: "Optimizer",
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"Sequential Schedulers expects number of schedulers provided to be one more than the number "
                f"of milestone points, but got number of schedulers {len(schedulers)} and the number of "
                f"milestones to be equal to {len(milestones)}"
            )
        self.schedulers, self.milestones = list(schedulers), list(milestones)
        # The schedules have set the rate already, so restore the rate that the first of them started from.
        for group, base in zip(optimizer.param_groups, schedulers[0].base_lrs, strict=True):
            group["lr"] = base
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int, group: int) -> float:
        """The learning rate at a step."""
        index = sum(milestone <= step for milestone in self.milestones)
        start = self.milestones[index - 1] if index else 0
        return self.schedulers[index].rate(base, step - start, group)
