"""From gradients to steps: the optimiser and its learning rate."""

import math
from collections.abc import Iterable

import torch
from torch import nn

from trainer.config import TrainConfig


def optimiser(parameters: Iterable[nn.Parameter], config: TrainConfig) -> torch.optim.Optimizer:
    """Adam (Kingma and Ba 2015) or SGD with momentum; one fused pass over the parameters."""
    if config.optimiser == "adam":
        return torch.optim.Adam(parameters, lr=config.learning_rate, fused=True)
    return torch.optim.SGD(parameters, lr=config.learning_rate, momentum=config.momentum, fused=True)


def learning_rate(config: TrainConfig, step: int, steps: int) -> float:
    """The rate of step 0, ..., steps - 1 of a whole run: rising linearly, then constant or along a cosine to 0."""
    warm = math.ceil(config.warm_up * steps)
    if step < warm:
        return config.learning_rate * (step + 1) / (warm + 1)
    if config.schedule == "constant":
        return config.learning_rate
    return config.learning_rate * 0.5 * (1 + math.cos(math.pi * (step - warm) / (steps - warm)))
