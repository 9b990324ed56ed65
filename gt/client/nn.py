"""Neural networks: `from gt.client import nn`, also `gt.nn`.

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(10, 20), nn.Linear(20, 1)

        def forward(self, x):
            return self.fc2(self.fc1(x).relu())

Names, arguments, parameter names and initial distributions are PyTorch's, so that code and weights move over.
This is the front: the modules are in `gt.client.modules`.
"""

from gt.client.modules.activations import *
from gt.client.modules.containers import *
from gt.client.modules.functional import (
    cross_entropy,
)
from gt.client.modules.layers import *
from gt.client.modules.losses import *

cross_entropy_loss = cross_entropy
