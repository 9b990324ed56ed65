"""Optimizers and learning-rate schedules: `gt.client.optim`, under the name that users type."""

from gt.client.optim import SGD, Adagrad, Adam, AdamW, Optimizer, RMSprop
from gt.optim import lr_scheduler

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]
