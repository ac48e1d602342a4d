"""From gradients to steps: the optimiser and its learning rate.

Large global batches make fewer steps, and want longer ones: in proportion to the batch for SGD (Goyal et al. 2017), to
its root for Adam (Krizhevsky 2014; Malladi et al. 2022), and a warm-up before the longest ones.
"""

import math
from collections.abc import Iterable

import torch
from torch import nn

from trainer.config import TrainConfig

BATCH = 256
"""Rows of the global batch that --learning-rate is meant for."""

_POWERS = {"none": 0.0, "root": 0.5, "linear": 1.0}


def optimiser(parameters: Iterable[nn.Parameter], config: TrainConfig) -> torch.optim.Optimizer:
    """Adam (Kingma and Ba 2015) or SGD with momentum; one fused pass over the parameters."""
    if config.optimiser == "adam":
        return torch.optim.Adam(parameters, lr=config.learning_rate, fused=True)
    return torch.optim.SGD(parameters, lr=config.learning_rate, momentum=config.momentum, fused=True)


def learning_rate(config: TrainConfig, step: int, steps: int, global_batch: int) -> float:
    """The rate of step 0, ..., steps - 1 of a whole run: rising linearly, then constant or along a cosine to 0."""
    highest: float = config.learning_rate * (global_batch / BATCH) ** _POWERS[config.rate_scaling]
    warm = math.ceil(config.warm_up * steps)
    if step < warm:
        return highest * (step + 1) / (warm + 1)
    if config.schedule == "constant":
        return highest
    return highest * 0.5 * (1 + math.cos(math.pi * (step - warm) / (steps - warm)))
