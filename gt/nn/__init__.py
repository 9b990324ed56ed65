"""Neural networks: `from gt.client import nn`, also `gt.nn`.

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(10, 20), nn.Linear(20, 1)

        def forward(self, x):
            return self.fc2(self.fc1(x).relu())

Names, arguments, parameter names and initial distributions are PyTorch's, so that code and weights carry
over.
"""

from gt.nn import functional, init, utils
from gt.nn.activations import ELU, GELU, LeakyReLU, LogSoftmax, ReLU, Sigmoid, SiLU, Softmax, Softplus, Tanh
from gt.nn.attention import MultiheadAttention
from gt.nn.batch_norm import BatchNorm1d, BatchNorm2d
from gt.nn.containers import ModuleDict, ModuleList, Sequential
from gt.nn.functional import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    l1_loss,
    mse_loss,
    nll_loss,
    relu,
    sigmoid,
    smooth_l1_loss,
    tanh,
)
from gt.nn.layers import (
    AvgPool2d,
    Conv2d,
    Dropout,
    Embedding,
    Flatten,
    Identity,
    LayerNorm,
    Linear,
    MaxPool2d,
    RMSNorm,
)
from gt.nn.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from gt.nn.module import Module, Parameter

__all__ = [
    "ELU",
    "GELU",
    "AvgPool2d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "HuberLoss",
    "Identity",
    "KLDivLoss",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiheadAttention",
    "NLLLoss",
    "Parameter",
    "RMSNorm",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "Softmax",
    "Softplus",
    "Tanh",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "cross_entropy_loss",
    "functional",
    "init",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "relu",
    "sigmoid",
    "smooth_l1_loss",
    "tanh",
    "utils",
]

cross_entropy_loss = cross_entropy
