"""Optimizers and learning-rate schedules, with PyTorch's names, arguments and results."""

from gt.optim import lr_scheduler
from gt.optim.optimizers import SGD, Adagrad, Adam, AdamW, Optimizer, RMSprop

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]
