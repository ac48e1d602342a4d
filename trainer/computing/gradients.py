"""One rank's own part of a step: the gradients of its share of the global batch, for any task.

A rank's loss is the *sum* over its rows divided by the rows of the whole global batch. Summed over ranks (exchange.py)
it is the mean over the global batch, for any split. Do not divide by the rows of the share. Class weights scale the
losses of rows, and do not change the divisor: it counts rows, not weights. A rank without rows computes nothing and
contributes zero.

In the same way each thread of a CPU computes a piece of the share, and a GPU computes several pieces one after the
other if a share does not fit into its memory: the gradients of the pieces add up to those of the share.
"""

import copy
import time
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from trainer.clock import BACKWARD, FORWARD, SLOWED, StepTimer
from trainer.computing.precision import loss_scale
from trainer.computing.row_gradients import TouchedRows, add_up, row_gradient, touched_rows
from trainer.computing.threads import Threads
from trainer.errors import RankError
from trainer.order import IntArray

_FEWEST = 16
"""The least rows of a thread: fewer take nearly as long."""


class LossOf(Protocol):
    """A task's loss of rows."""

    def __call__(self, model: nn.Module, numbers: IntArray, step: int, timer: StepTimer) -> Tensor:
        """The sum of the losses of these rows (n,), n > 0, in a step of the run: a scalar on the model's device. It
        reports to `timer` when the rows are loaded (clock.ROWS)."""
        ...


class GradientComputer:
    """Computes shares with one model on one device; on a CPU by `threads`.

    `rows`: the number of training rows. `tables`: the model's parameters of which a batch touches few rows; those among
    `sparse_tables` have gradients of these rows alone (row_gradients.py). `precision`: that of its layers. `timer` is
    told the phases; its owner begins the steps.
    """

    def __init__(
        self,
        model: nn.Module,
        loss_of: LossOf,
        *,
        rows: int,
        tables: Sequence[Tensor] = (),
        sparse_tables: Sequence[Tensor] = (),
        precision: torch.dtype = torch.float32,
        device: torch.device,
        timer: StepTimer,
        threads: Threads | None = None,
    ) -> None:
        self.model, self.rows, self.device = model, rows, device
        self.tables, self.sparse_tables = tables, sparse_tables
        self.piece_rows = 0
        """Rows of a piece, once a share did not fit into memory; 0: no limit."""
        self._loss_of = loss_of
        self._parameters = list(model.parameters())
        self._precision = precision
        self._timer = timer
        self._threads = threads or Threads(1)

    def with_copied_model(self, timer: StepTimer) -> "GradientComputer":
        """A computer with a copy of the model, which learns by itself, for the same rows and in the same way. The copy
        has the same sparse tables: they may be most of a machine's memory."""
        model = copy.deepcopy(self.model, {id(table): table for table in self.sparse_tables})
        for module in model.modules():
            if isinstance(module, nn.RNNBase):
                module.flatten_parameters()  # a copy's weights lie apart, and cuDNN would gather them at every step
        copies: dict[Tensor, Tensor] = dict(zip(self._parameters, model.parameters(), strict=True))
        return GradientComputer(
            model,
            self._loss_of,
            rows=self.rows,
            tables=[copies[table] for table in self.tables],
            sparse_tables=self.sparse_tables,
            precision=self._precision,
            device=self.device,
            timer=timer,
            threads=self._threads,
        )

    def __call__(self, numbers: IntArray, of: int, step: int, slowness: float = 1.0) -> Tensor:
        """Add the gradients of these rows (n,) of a global batch of `of` rows to the model's; n may be 0.

        `slowness`: sleep until so many times the own compute time has passed. Returns these rows' part of the global
        batch's mean loss, a scalar still on the device. Raises RankError if not even one row fits into memory.
        """
        start = time.perf_counter()
        while True:
            try:
                loss = self._in_pieces(numbers, of, step)
                break
            except torch.OutOfMemoryError:
                before = min(self.piece_rows or len(numbers), len(numbers))
            self._take_less(before)
        if slowness > 1.0:
            time.sleep((slowness - 1.0) * (time.perf_counter() - start))
            self._timer.end_phase(SLOWED)
        return loss

    def _in_pieces(self, numbers: IntArray, of: int, step: int) -> Tensor:
        """The sum of losses and gradients over pieces: one per thread at a time, each with short and long rows."""
        loss = torch.zeros((), device=self.device, dtype=self._parameters[0].dtype)
        sums = _Sums()
        size = self.piece_rows or max(1, len(numbers))
        scale = loss_scale(self._precision, of)
        for start in range(0, len(numbers), size):
            rows = numbers[start : start + size]
            threads = max(1, min(self._threads.count, len(rows) // _FEWEST))

            def computed(first: int, rows: IntArray = rows, threads: int = threads) -> tuple[Tensor, Sequence[Tensor]]:
                return self._piece(rows[first::threads], of, step, scale, StepTimer() if first else self._timer)

            for part, gradients in self._threads.map(computed, range(threads)):
                loss += part
                sums.add(gradients)
            self._timer.end_phase(BACKWARD)
        for parameter, gradient in zip(self._parameters, sums.over(scale, self._parameters), strict=bool(len(numbers))):
            parameter.grad = gradient if parameter.grad is None else _sum(parameter.grad, gradient)
        return loss

    def _piece(
        self, numbers: IntArray, of: int, step: int, scale: float, timer: StepTimer
    ) -> tuple[Tensor, Sequence[Tensor]]:
        loss = self._loss_of(self.model, numbers, step, timer) / of
        timer.end_phase(FORWARD)
        gradients = torch.autograd.grad(loss * scale, self._parameters)
        timer.end_phase(BACKWARD)
        return loss.detach(), gradients

    def _take_less(self, rows: int) -> None:
        """From now on compute in pieces of half of `rows`, which did not fit."""
        if rows <= 1:
            raise RankError(
                f"not one row fits into the memory of {self.device}; take a smaller model, or end what else runs there"
            )
        self.piece_rows = (rows + 1) // 2
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


class _Sums:
    """The sums of the parameters' gradients over pieces."""

    def __init__(self) -> None:
        self._dense: list[Tensor] = []
        self._sparse: list[list[TouchedRows]] = []
        self._is_sparse: list[bool] = []

    def add(self, gradients: Sequence[Tensor]) -> None:
        """Add the gradients of a piece, one per parameter."""
        dense = [each for each in gradients if not each.is_sparse]
        sparse = [touched_rows(each) for each in gradients if each.is_sparse]
        if self._is_sparse:
            torch._foreach_add_(self._dense, dense)
            for parts, touched in zip(self._sparse, sparse, strict=True):
                parts.append(touched)
        else:
            self._dense, self._sparse = dense, [[touched] for touched in sparse]
            self._is_sparse = [each.is_sparse for each in gradients]

    def over(self, scale: float, parameters: Sequence[Tensor]) -> list[Tensor]:
        """The sums divided by `scale`, one per parameter; empty if nothing was added."""
        sparse = [add_up(parts) for parts in self._sparse]
        if scale != 1.0 and self._is_sparse:
            torch._foreach_div_([*self._dense, *(touched.values for touched in sparse)], scale)
        dense, rows = iter(self._dense), iter(sparse)
        return [
            row_gradient(parameter, next(rows)) if is_sparse else next(dense)
            for parameter, is_sparse in zip(parameters, self._is_sparse, strict=False)
        ]


def _sum(gradient: Tensor, other: Tensor) -> Tensor:
    if gradient.is_sparse:
        return row_gradient(gradient, add_up([touched_rows(gradient), touched_rows(other)]))
    return gradient + other
