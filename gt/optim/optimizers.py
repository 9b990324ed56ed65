"""Optimizers, with PyTorch's names, arguments and results.

    optimizer = gt.optim.AdamW(model.parameters(), lr=1e-3)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()

A step is one to three instructions per parameter, never recorded on the tape. It does not wait: numbers that
change from step to step (learning rate, bias correction) are computed in the client and sent as attributes.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gt.autograd.graph import enable_grad, no_grad
from gt.errors import StateError
from gt.nn.module import clear_gradients
from gt.optim import lr_scheduler
from gt.tensors.functions.creation import as_tensor, full_like, zeros_like
from gt.tensors.tensor import Tensor

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]

Group = dict[str, Any]
State = dict[str, Any]


class Optimizer:
    """Base class: parameters in groups, each with its own settings, and the state of each parameter.

    A subclass implements `_update`, which changes one parameter.
    """

    def __init__(self, params: Iterable[Any], defaults: Group) -> None:
        self.defaults = defaults
        self.param_groups: list[Group] = []
        self.state: dict[Tensor, State] = {}
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts"
            )
        given = list(params)
        if not given:
            raise ValueError("optimizer got an empty parameter list")
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: Group) -> None:
        """Add parameters with their own settings."""
        params = param_group["params"]
        params = [params] if isinstance(params, Tensor) else list(params)
        # `named_parameters()` is accepted too.
        params = [pair[1] if isinstance(pair, tuple) else pair for pair in params]
        known = {id(parameter) for group in self.param_groups for parameter in group["params"]}
        for parameter in params:
            if not isinstance(parameter, Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {parameter!r}"
                )
            if not parameter.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
            if id(parameter) in known:
                raise ValueError("some parameters appear in more than one parameter group, or twice in one")
            known.add(id(parameter))
        self.param_groups.append({**self.defaults, **param_group, "params": params})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients to None, or to zeros."""
        clear_gradients((p for group in self.param_groups for p in group["params"]), set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient. A closure, if given, computes the loss first."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    gradient = parameter.grad
                    if gradient is not None:
                        self._update(parameter, gradient, self.state.setdefault(parameter, {}), group)
        return loss

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        """Change one parameter in place, given its gradient."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """A checkpoint's state, in PyTorch's form: `state` by parameter number, `param_groups`."""
        numbers = {id(parameter): number for number, parameter in enumerate(self._all())}
        return {
            "state": {
                numbers[id(parameter)]: {
                    name: value.detach() if isinstance(value, Tensor) else value
                    for name, value in state.items()
                }
                for parameter, state in self.state.items()
            },
            "param_groups": [
                {**group, "params": [numbers[id(parameter)] for parameter in group["params"]]}
                for group in self.param_groups
            ],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a `state_dict()`, of GT or PyTorch, of the same parameters in the same order."""
        groups = state_dict["param_groups"]
        if len(groups) != len(self.param_groups):
            raise StateError("loaded state dict has a different number of parameter groups")
        for mine, other in zip(self.param_groups, groups, strict=True):
            if len(mine["params"]) != len(other["params"]):
                raise StateError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's "
                    "group"
                )
        for mine, other in zip(self.param_groups, groups, strict=True):
            mine.update({name: value for name, value in other.items() if name != "params"})
        order = [number for group in groups for number in group["params"]]
        parameters = dict(zip(order, self._all(), strict=True))
        self.state = {
            parameters[number]: {name: _number_or_tensor(name, value) for name, value in state.items()}
            for number, state in state_dict["state"].items()
        }

    def _all(self) -> Iterator[Tensor]:
        return (parameter for group in self.param_groups for parameter in group["params"])

    def __repr__(self) -> str:
        lines = []
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {name}: {value}" for name, value in sorted(group.items()) if name != "params"]
        return f"{type(self).__name__} (\n" + "\n".join(lines) + "\n)"


class SGD(Optimizer):
    """Stochastic gradient descent, with optional momentum, Nesterov momentum and weight decay."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        _not_negative(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
            },
        )

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        # The sign is part of the scale, so `maximize` needs no further instruction.
        lr, sign = group["lr"], -1.0 if group["maximize"] else 1.0
        if group["weight_decay"]:
            gradient, sign = _weighted_sum(gradient, parameter, sign, group["weight_decay"]), 1.0
        momentum = group["momentum"]
        if momentum:
            velocity = state.get("momentum_buffer")
            if velocity is None:
                velocity = gradient._value.tensor() if sign == 1 else -gradient
            else:
                velocity = _weighted_sum(velocity, gradient, momentum, sign * (1 - group["dampening"]))
            state["momentum_buffer"] = velocity
            gradient = _weighted_sum(gradient, velocity, sign, momentum) if group["nesterov"] else velocity
            sign = 1.0
        parameter._become(_weighted_sum(parameter, gradient, 1.0, -lr * sign))


class Adam(Optimizer):
    """Adam: a step of equal size for every parameter, in the direction of the averaged gradient."""

    decoupled = False
    """Whether weight decay shrinks the parameter itself (AdamW) or is added to the gradient (Adam)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        _not_negative(lr=lr, eps=eps, weight_decay=weight_decay)
        for index, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {index}: {beta}")
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
            },
        )

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        lr, (beta1, beta2), decay = group["lr"], group["betas"], group["weight_decay"]
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = zeros_like(parameter), zeros_like(parameter)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = zeros_like(parameter)
        step = state["step"] = state["step"] + 1
        sign = -1.0 if group["maximize"] else 1.0
        if decay and not self.decoupled:
            gradient, sign = _weighted_sum(gradient, parameter, sign, decay), 1.0
        state["exp_avg"] = _weighted_sum(state["exp_avg"], gradient, beta1, sign * (1 - beta1))
        squares = state["exp_avg_sq"] = _average_of_squares(state["exp_avg_sq"], gradient, beta2)
        if group["amsgrad"]:
            squares = state["max_exp_avg_sq"] = state["max_exp_avg_sq"].maximum(squares)
        _adaptive_step(
            parameter,
            state["exp_avg"],
            squares,
            rate=lr / (1 - beta1**step),
            shrink=1 - lr * decay if self.decoupled else 1.0,
            correction=math.sqrt(1 - beta2**step),
            eps=group["eps"],
        )


class AdamW(Adam):
    """Adam with decoupled weight decay: parameters shrink by a fraction of the learning rate."""

    decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


class RMSprop(Optimizer):
    """Gradients divided by the root of the average of their squares."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
    ) -> None:
        _not_negative(lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum)
        super().__init__(
            params,
            {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum},
        )

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        if group["weight_decay"]:
            gradient = _weighted_sum(gradient, parameter, 1.0, group["weight_decay"])
        if not state:
            state["square_avg"] = zeros_like(parameter)
            if group["momentum"]:
                state["momentum_buffer"] = zeros_like(parameter)
        squares = state["square_avg"] = _average_of_squares(state["square_avg"], gradient, group["alpha"])
        rate, eps = group["lr"], group["eps"]
        if not group["momentum"]:
            _adaptive_step(parameter, gradient, squares, rate, 1.0, 1.0, eps)
            return
        velocity = state["momentum_buffer"]._value.tensor()
        _adaptive_step(velocity, gradient, squares, -1.0, group["momentum"], 1.0, eps)
        state["momentum_buffer"] = velocity
        parameter._become(_weighted_sum(parameter, velocity, 1.0, -rate))


class Adagrad(Optimizer):
    """Gradients divided by the root of the sum of their squares so far."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
    ) -> None:
        _not_negative(lr=lr, lr_decay=lr_decay, weight_decay=weight_decay, eps=eps)
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "eps": eps,
            },
        )

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        if group["weight_decay"]:
            gradient = _weighted_sum(gradient, parameter, 1.0, group["weight_decay"])
        if not state:
            state["step"] = 0
            state["sum"] = full_like(parameter, group["initial_accumulator_value"])
        rate = group["lr"] / (1 + state["step"] * group["lr_decay"])
        state["step"] += 1
        state["sum"] = state["sum"] + gradient * gradient
        _adaptive_step(parameter, gradient, state["sum"], rate, 1.0, 1.0, group["eps"])


# --- ops of updates ---


def _weighted_sum(x: Tensor, y: Tensor, x_scale: float, y_scale: float) -> Tensor:
    return x._apply("weighted_sum", y, x_scale=float(x_scale), y_scale=float(y_scale))


def _average_of_squares(average: Tensor, gradient: Tensor, decay: float) -> Tensor:
    return average._apply("average_of_squares", gradient, decay=float(decay))


def _adaptive_step(
    x: Tensor, direction: Tensor, squares: Tensor, rate: float, shrink: float, correction: float, eps: float
) -> None:
    """`x` becomes `x * shrink - rate * direction / (sqrt(squares) / correction + eps)`."""
    numbers = {"rate": rate, "shrink": shrink, "correction": correction, "eps": eps}
    x._become(x._apply("adaptive_step", direction, squares, **{k: float(v) for k, v in numbers.items()}))


def _number_or_tensor(name: str, value: Any) -> Any:
    # PyTorch counts steps in a tensor; here they are a number.
    if name == "step":
        return int(value)
    return value if value is None or isinstance(value, int | float) else as_tensor(value).detach()


def _not_negative(**settings: float) -> None:
    for name, value in settings.items():
        if isinstance(value, Tensor) or not value >= 0:
            raise ValueError(f"Invalid {name.replace('lr', 'learning rate', 1)}: {value}")
