"""Optimiser and learning rate.

With a larger global batch, an epoch has fewer steps, so each step needs a higher learning rate: proportional to the
batch size for SGD (Goyal et al. 2017), and to its square root for Adam (Krizhevsky 2014; Malladi et al. 2022), after a
warm-up.

Do not create a `torch.optim.Optimizer`: the first one imports torch's compiler, which delays the first step of every
rank by as long as importing torch takes. The functional forms, such as `torch.optim.adam.adam`, do not import the
compiler.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adagrad import adagrad
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from trainer.computing import row_updates
from trainer.computing.row_gradients import new_table, touched_rows
from trainer.computing.row_updates import ADAGRAD_TINY, ADAM_KEEPS, ADAM_TINY
from trainer.options.optimisation_options import OptimisationOptions

BATCH = 256
"""Size of the global batch for which `--learning-rate` is meant. For other sizes, the rate is scaled."""

_POWERS = {"none": 0.0, "root": 0.5, "linear": 1.0}
_ADAM: dict[str, Any] = {
    "beta1": ADAM_KEEPS[0],
    "beta2": ADAM_KEEPS[1],
    "eps": ADAM_TINY,
    "weight_decay": 0.0,
    "amsgrad": False,
    "maximize": False,
}
_ADAGRAD: dict[str, Any] = {"lr_decay": 0.0, "weight_decay": 0.0, "eps": ADAGRAD_TINY, "maximize": False}
_SGD: dict[str, Any] = {"weight_decay": 0.0, "dampening": 0.0, "nesterov": False, "maximize": False}


class Optimiser:
    """Adam (Kingma and Ba 2015), Adagrad (Duchi et al. 2011) or SGD with momentum, with a separate rate for word
    vectors.

    Every parameter must have a gradient at each step. The state of each parameter is that of torch.optim: two moments
    and a step count for Adam, a sum of squares and a step count for Adagrad, one moment for SGD. Word vectors are
    `tables` and `sparse_tables`. A step changes only those rows of `sparse_tables` that have a gradient
    (row_updates.py). In sparse tables, SGD uses no momentum, and Adagrad keeps one sum per row.
    """

    def __init__(
        self,
        model: nn.Module,
        tables: Sequence[Tensor],
        config: OptimisationOptions,
        *,
        sparse_tables: Sequence[Tensor] = (),
        row_rates: Sequence[Tensor | None] = (),
    ) -> None:
        """`row_rates`: for each sparse table, the factor (rows, 1) of Adagrad's rate for each row; None: no factors."""
        self._parameters: list[Tensor] = list(model.parameters())
        self._config, self._learns = config, True
        self._tables, self._sparse = (
            [number for number, each in enumerate(self._parameters) if any(each is table for table in which)]
            for which in (tables, sparse_tables)
        )
        self._row_rates = dict(zip(self._sparse, row_rates, strict=False))
        self._dense = [number for number in range(len(self._parameters)) if number not in self._sparse]
        others = [number for number in self._dense if number not in self._tables]
        self._groups = (self._tables, config.word_rate), (others, 1.0)
        kind = config.optimiser
        everywhere = [*self._dense, *self._sparse]
        self._first = self._moments({"adam": everywhere, "adagrad": [], "sgd": self._dense}[kind])
        self._second = self._moments({"adam": everywhere, "adagrad": self._dense, "sgd": []}[kind])
        if kind == "adagrad":
            self._second |= {number: self._zeros(number, columns=1) for number in self._sparse}
        # torch's adagrad reads the step counts on the host, which would wait for each of them if they were on a GPU.
        self._steps = {
            number: torch.zeros((), device="cpu" if number in self._sparse or kind == "adagrad" else each.device)
            for number, each in enumerate(self._parameters)
            if kind != "sgd"
        }

    def rehearsal(self, copied: nn.Module) -> "Optimiser":
        """Return an optimiser for `copied`, a copy of the model that shares the sparse tables.

        Its steps do the same work as steps of this optimiser, but change only the copied parameters.
        """
        shared = [self._parameters[number] for number in self._sparse]
        parameters = list(copied.parameters())
        optimiser = Optimiser(
            copied, [parameters[number] for number in self._tables], self._config, sparse_tables=shared
        )
        optimiser._first.update({number: self._first[number] for number in self._sparse if number in self._first})
        optimiser._second.update({number: self._second[number] for number in self._sparse if number in self._second})
        optimiser._row_rates = self._row_rates
        optimiser._learns = False
        return optimiser

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Update the parameters from their gradients. The learning rate of word vectors is `word_rate` times `rate`."""
        for numbers, share in self._groups:
            if numbers:
                self._step_dense(numbers, share * rate)
        for number in self._sparse:
            self._step_sparse(number, self._config.word_rate * rate if self._learns else 0.0)

    def clear(self) -> None:
        for each in self._parameters:
            each.grad = None

    def state(self) -> dict[str, Tensor]:
        """Return the state for a checkpoint: tensors by kind and index of the parameter, such as `first.0`."""
        kinds = {"first": self._first, "second": self._second, "steps": self._steps}
        return {f"{kind}.{number}": each for kind, tensors in kinds.items() for number, each in sorted(tensors.items())}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Restore a `state()` of an optimiser for parameters of the same shapes."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])

    def _moments(self, numbers: Sequence[int]) -> dict[int, Tensor]:
        return {
            number: self._zeros(number, columns=self._parameters[number].shape[1])
            if number in self._sparse
            else torch.zeros_like(self._parameters[number], requires_grad=False)
            for number in numbers
        }

    def _zeros(self, number: int, *, columns: int) -> Tensor:
        """Return zeros (rows of the table, columns), a new moment of a sparse table."""
        table = self._parameters[number]
        return new_table(len(table), columns, table).zero_()

    def _step_dense(self, numbers: Sequence[int], rate: float) -> None:
        parameters = [self._parameters[number] for number in numbers]
        gradients = [each.grad for each in parameters if each.grad is not None]
        assert len(gradients) == len(parameters)
        first, second, steps = (
            [each[number] for number in numbers if number in each] for each in (self._first, self._second, self._steps)
        )
        if self._config.optimiser == "adam":
            adam(parameters, gradients, first, second, [], steps, fused=True, lr=rate, **_ADAM)
        elif self._config.optimiser == "adagrad":
            adagrad(parameters, gradients, second, steps, lr=rate, **_ADAGRAD)
        elif not self._config.momentum:
            torch._foreach_add_(parameters, gradients, alpha=-rate)
        else:
            moments: list[Tensor | None] = list(first)
            sgd(parameters, gradients, moments, fused=True, lr=rate, momentum=self._config.momentum, **_SGD)

    def _step_sparse(self, number: int, rate: float) -> None:
        table = self._parameters[number]
        assert table.grad is not None
        touched = touched_rows(table.grad)
        if self._config.optimiser == "adam":
            self._steps[number] += 1
            first, second, step = self._first[number], self._second[number], int(self._steps[number])
            row_updates.adam(table, first, second, touched, rate, step=step, learns=self._learns)
        elif self._config.optimiser == "adagrad":
            of_rows = self._row_rates.get(number)
            row_updates.adagrad(table, self._second[number], touched, rate, learns=self._learns, row_rates=of_rows)
        else:
            row_updates.sgd(table, touched, rate)


def learning_rate(config: OptimisationOptions, step: int, steps: int, global_batch: int) -> float:
    """Return the learning rate of a step, from 0 to `steps` - 1, of a run of `steps` steps.

    The rate rises linearly during the warm-up. Then it is constant, or falls to 0 linearly or along a cosine.
    """
    highest: float = config.learning_rate * (global_batch / BATCH) ** _POWERS[config.rate_scaling]
    warm = math.ceil(config.warm_up * steps)
    if step < warm:
        return highest * (step + 1) / (warm + 1)
    if config.schedule == "constant":
        return highest
    done = (step - warm) / max(1, steps - warm)
    return highest * (1.0 - done if config.schedule == "linear" else 0.5 * (1 + math.cos(math.pi * done)))
