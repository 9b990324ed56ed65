"""Check gradients against PyTorch's.

    python test_grad.py

Prints a line for each function it checked, and "ok".
"""

import numpy as np
import torch

import gt

FUNCTIONS = {
    "x * x + x": lambda x: x * x + x,
    "exp(x) / (1 + exp(x))": lambda x: x.exp() / (1 + x.exp()),
    "relu(x) @ tanh(x)": lambda x: x.relu() @ x.tanh(),
    "sigmoid(x).mean(dim=0)": lambda x: x.sigmoid().mean(dim=0),
    "log(x * x + 1)": lambda x: (x * x + 1).log(),
}


def main() -> None:
    """Compare the gradient of each function's sum."""
    data = np.random.default_rng(0).standard_normal((4, 4), np.float32)
    for name, function in FUNCTIONS.items():
        ours = gt.from_numpy(data, requires_grad=True)
        theirs = torch.from_numpy(data.copy()).requires_grad_()
        function(ours).sum().backward()
        function(theirs).sum().backward()
        assert ours.grad is not None
        assert theirs.grad is not None
        difference = np.abs(ours.grad.numpy() - theirs.grad.numpy()).max()
        print(f"{name:<24} largest difference {difference:.1e}")
        assert difference < 1e-5, name
    print("ok")


if __name__ == "__main__":
    main()
