"""The optimiser and its learning rate.

Large global batches make fewer steps, and need larger ones: in proportion to the batch for SGD (Goyal et al. 2017), to
its root for Adam (Krizhevsky 2014; Malladi et al. 2022), with a warm-up before the largest ones.

Do not create a `torch.optim.Optimizer`: the first one imports torch's compiler, which delays the first step of every
rank by as long as importing torch takes. The functions behind those classes do not need it.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from trainer.config import OptimisationOptions

BATCH = 256
"""Rows of the global batch that --learning-rate is meant for."""

_POWERS = {"none": 0.0, "root": 0.5, "linear": 1.0}
_ADAM: dict[str, Any] = {
    "beta1": 0.9,
    "beta2": 0.999,
    "eps": 1e-8,
    "weight_decay": 0.0,
    "amsgrad": False,
    "maximize": False,
}
_SGD: dict[str, Any] = {"weight_decay": 0.0, "dampening": 0.0, "nesterov": False, "maximize": False}


class Optimiser:
    """Adam (Kingma and Ba 2015) or SGD with momentum for a model's parameters, in fused passes; word vectors, the
    `tables`, have a learning rate of their own.

    Every parameter needs a gradient when a step is taken. The state is, as in torch.optim, two moments per parameter
    and the number of steps for Adam, and one moment for SGD.
    """

    def __init__(self, model: nn.Module, tables: Sequence[Tensor], config: OptimisationOptions) -> None:
        self._parameters: list[Tensor] = list(model.parameters())
        self._momentum = None if config.optimiser == "adam" else config.momentum
        self._first = [torch.zeros_like(each, requires_grad=False) for each in self._parameters]
        adams = self._parameters if self._momentum is None else []
        self._second = [torch.zeros_like(each, requires_grad=False) for each in adams]
        self._steps = [torch.zeros((), device=each.device) for each in adams]
        of_tables = [number for number, each in enumerate(self._parameters) if any(each is table for table in tables)]
        others = [number for number in range(len(self._parameters)) if number not in of_tables]
        self._groups = ((of_tables, config.word_rate), (others, 1.0))

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Change the parameters by their gradients at a learning rate, word vectors at `word_rate` times that."""
        for numbers, share in self._groups:
            parameters, first = ([each[number] for number in numbers] for each in (self._parameters, self._first))
            gradients = [each.grad for each in parameters if each.grad is not None]
            assert len(gradients) == len(parameters)
            if self._momentum is None:
                second, steps = ([each[number] for number in numbers] for each in (self._second, self._steps))
                adam(parameters, gradients, first, second, [], steps, fused=True, lr=share * rate, **_ADAM)
            else:
                moments: list[Tensor | None] = list(first)
                sgd(parameters, gradients, moments, fused=True, lr=share * rate, momentum=self._momentum, **_SGD)

    def clear(self) -> None:
        """Drop the gradients."""
        for each in self._parameters:
            each.grad = None

    def state(self) -> dict[str, Tensor]:
        """The state for a checkpoint, by kind and number of the parameter."""
        kinds = {"first": self._first, "second": self._second, "steps": self._steps}
        return {f"{kind}.{number}": each for kind, own in kinds.items() for number, each in enumerate(own)}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state of an optimiser for parameters of the same shapes."""
        for name, own in self.state().items():
            own.copy_(state[name])


def learning_rate(config: OptimisationOptions, step: int, steps: int, global_batch: int) -> float:
    """The rate of step 0, ..., steps - 1 of a whole run: rising linearly, then constant or along a cosine to 0."""
    highest: float = config.learning_rate * (global_batch / BATCH) ** _POWERS[config.rate_scaling]
    warm = math.ceil(config.warm_up * steps)
    if step < warm:
        return highest * (step + 1) / (warm + 1)
    if config.schedule == "constant":
        return highest
    return highest * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))
