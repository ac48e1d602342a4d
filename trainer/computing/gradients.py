"""Gradients of one rank's share of the global batch, for any task.

A rank's loss is the *sum* of its rows' losses, divided by the number of rows in the whole global batch. The sum of the
ranks' losses (exchange.py) is then the mean loss of the global batch, for any split. Do not divide by the number of
rows in the rank's share. Class weights scale the losses of rows, but do not change the divisor. A rank without rows
computes nothing and contributes zero.

Similarly, each CPU thread computes one piece of the share. A GPU computes several pieces, one after the other, if the
share does not fit into its memory. The gradients of the pieces add up to the gradients of the share.
"""

import copy
import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from shoal_balance import IntArray
from torch import Tensor, nn

from trainer.clock import BACKWARD, FORWARD, SLOWED, StepTimer
from trainer.computing.precision import loss_scale
from trainer.computing.row_gradients import (
    FactoredGradient,
    collect_gradients,
    concatenate,
    row_gradient,
    sum_touched_rows,
    zero_gradient,
)
from trainer.computing.threads import Threads
from trainer.rank_errors import RankError

_FEWEST = 16
"""Minimum number of rows per thread: a thread with fewer rows would take nearly as long."""


class LossOf(Protocol):
    """Loss function of a task."""

    def __call__(self, model: nn.Module, numbers: IntArray, step: int, timer: StepTimer) -> Tensor:
        """Return the sum of the losses of the training rows `numbers` (n,), n > 0: a scalar on the model's device.

        `step`: the step of the run, on which random choices depend. `timer`: the function ends the timer's phase
        clock.ROWS when the rows are loaded.
        """
        ...


class Piece(NamedTuple):
    """Contribution of one piece of rows: its loss, and its gradients of dense parameters and of sparse tables."""

    loss: Tensor
    gradients: Sequence[Tensor]
    table_gradients: list[list[FactoredGradient]]


class DirectGradients(Protocol):
    """Function that computes a loss and its gradients without autograd."""

    fewest: int
    """Minimum number of rows per thread. Short steps are mostly Python overhead, which more threads do not reduce."""

    def __call__(self, model: nn.Module, numbers: IntArray, batch_rows: int, step: int, timer: StepTimer) -> Piece:
        """Return the contribution of the training rows `numbers` (n,), n > 0, to a global batch of `batch_rows` rows.

        `step`: the step of the run, on which random choices depend. `timer`: the function ends the timer's phases.
        """
        ...


class GradientComputer:
    """Computes the loss and the gradients of this rank's share of each global batch, with one model on one device.

    `rows`: the number of training rows. `sparse_tables`: parameters with gradients that contain only the touched rows.
    These gradients are returned by `take_table_gradients` instead of being set (row_gradients.py). `precision`: the
    precision of the layers. `timer`: receives the phases of each step; the caller begins the steps. `threads`: compute
    pieces in parallel on a CPU. `direct`: computes the same as autograd with `loss_of`, and is used instead of autograd
    in float32.
    """

    def __init__(
        self,
        model: nn.Module,
        loss_of: LossOf | None,
        *,
        rows: int,
        sparse_tables: Sequence[Tensor] = (),
        precision: torch.dtype = torch.float32,
        device: torch.device,
        timer: StepTimer,
        threads: Threads | None = None,
        direct: DirectGradients | None = None,
    ) -> None:
        self.model, self.rows, self.device = model, rows, device
        self.sparse_tables = sparse_tables
        self.slowness = 1.0
        """Factor by which this rank extends the compute time of each step, by sleeping (`--slow`)."""
        self.piece_rows = 0
        """Largest number of rows in a piece. It is set when a share does not fit into memory; 0: no limit."""
        self._loss_of = loss_of
        self._parameters = [each for each in model.parameters() if _index_of(each, sparse_tables) is None]
        self._table_gradients: list[list[FactoredGradient]] = [[] for _ in sparse_tables]
        self._precision = precision
        self._timer = timer
        self._threads = threads or Threads(1)
        self._direct = direct if precision == torch.float32 else None

    def with_copied_model(self, timer: StepTimer) -> "GradientComputer":
        """Return a GradientComputer for the same rows with an independent copy of the model.

        Only the sparse tables are shared with the copy, because they can fill most of a machine's memory.
        """
        model = copy.deepcopy(self.model, {id(table): table for table in self.sparse_tables})
        for module in model.modules():
            if isinstance(module, nn.RNNBase):
                module.flatten_parameters()  # otherwise cuDNN would gather the copied weights at every step
        computer = GradientComputer(
            model,
            self._loss_of,
            rows=self.rows,
            sparse_tables=self.sparse_tables,
            precision=self._precision,
            device=self.device,
            timer=timer,
            threads=self._threads,
            direct=self._direct,
        )
        computer.slowness = self.slowness
        return computer

    def __call__(self, numbers: IntArray, batch_rows: int, step: int) -> Tensor:
        """Compute the rows `numbers` (n,), n >= 0, of a global batch of `batch_rows` rows, and add their gradients to
        those of the model.

        Returns the contribution of the rows to the mean loss of the global batch: a scalar on the device. Raises
        RankError if a single row does not fit into memory.
        """
        if self.slowness > 1.0 and self.device.type == "cuda":
            torch.cuda.synchronize(self.device)  # exclude the previous step's work from the measured time
        start = time.perf_counter()
        while True:
            try:
                loss = self._in_pieces(numbers, batch_rows, step)
                break
            except torch.OutOfMemoryError:
                before = min(self.piece_rows or len(numbers), len(numbers))
            self._halve_pieces(before)
        if self.slowness > 1.0:
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)  # the host sleeps, so it must wait for the GPU's queue first
            time.sleep((self.slowness - 1.0) * (time.perf_counter() - start))
            self._timer.end_phase(SLOWED)
        return loss

    def take_table_gradients(self) -> list[FactoredGradient]:
        """Return the gradient of each sparse table for the rows that were computed since the last call."""
        gradients = [
            concatenate(parts) if parts else zero_gradient(table)
            for parts, table in zip(self._table_gradients, self.sparse_tables, strict=True)
        ]
        self._table_gradients = [[] for _ in self.sparse_tables]
        return gradients

    def set_table_gradients(self) -> None:
        """Set each sparse table's `grad` to the result of `take_table_gradients`, without a sum over ranks."""
        for table, gradient in zip(self.sparse_tables, self.take_table_gradients(), strict=True):
            table.grad = row_gradient(table, sum_touched_rows(gradient))

    def _in_pieces(self, numbers: IntArray, batch_rows: int, step: int) -> Tensor:
        """Compute the rows in pieces, and add their gradients to those of the model.

        Returns the sum of the losses of all pieces. Each thread takes every `threads`-th row, so
        that it has short and long rows.
        """
        size = self.piece_rows or max(1, len(numbers))
        scale = loss_scale(self._precision, batch_rows)
        loss, sums = None, []
        table_gradients: list[list[FactoredGradient]] = [[] for _ in self.sparse_tables]
        for start in range(0, len(numbers), size):
            rows = numbers[start : start + size]
            fewest = _FEWEST if self._direct is None else self._direct.fewest
            threads = max(1, min(self._threads.count, len(rows) // fewest))

            def computed(first: int, rows: IntArray = rows, threads: int = threads) -> Piece:
                return self._piece(rows[first::threads], batch_rows, step, scale, StepTimer() if first else self._timer)

            for piece in self._threads.map(computed, range(threads)):
                if loss is None:
                    loss, sums = piece.loss, list(piece.gradients)
                else:
                    loss = loss + piece.loss
                    if sums:
                        torch._foreach_add_(sums, list(piece.gradients))
                for known, more in zip(table_gradients, piece.table_gradients, strict=True):
                    known.extend(
                        part._replace(gradients=part.gradients / scale) if scale != 1.0 else part for part in more
                    )
            self._timer.end_phase(BACKWARD)
        if loss is None:
            return torch.zeros((), device=self.device, dtype=next(self.model.parameters()).dtype)
        if scale != 1.0:
            torch._foreach_div_(sums, scale)
        self._add(sums, table_gradients)
        return loss

    def _add(self, sums: Sequence[Tensor], table_gradients: Sequence[Sequence[FactoredGradient]]) -> None:
        """Add all gradients to those of the model. If memory runs out, add none, because the rows are computed
        again."""
        added = [
            gradient if parameter.grad is None else parameter.grad + gradient
            for parameter, gradient in zip(self._parameters, sums, strict=True)
        ]
        for parameter, gradient in zip(self._parameters, added, strict=True):
            parameter.grad = gradient
        for known, more in zip(self._table_gradients, table_gradients, strict=True):
            known.extend(more)

    def _piece(self, numbers: IntArray, batch_rows: int, step: int, scale: float, timer: StepTimer) -> Piece:
        if self._direct is not None:
            return self._direct(self.model, numbers, batch_rows, step, timer)
        assert self._loss_of is not None
        with collect_gradients() as collected:
            loss = self._loss_of(self.model, numbers, step, timer) / batch_rows
        timer.end_phase(FORWARD)
        inputs = [*self._parameters, *self.sparse_tables]
        gradients = torch.autograd.grad(loss * scale, inputs)[: len(self._parameters)]
        table_gradients: list[list[FactoredGradient]] = [[] for _ in self.sparse_tables]
        for table, each in collected:
            index = _index_of(table, self.sparse_tables)
            assert index is not None
            table_gradients[index].append(each)
        timer.end_phase(BACKWARD)
        return Piece(loss.detach(), gradients, table_gradients)

    def _halve_pieces(self, rows: int) -> None:
        """Limit a piece to half of `rows`, a number of rows that did not fit into memory."""
        if rows <= 1:
            raise RankError(
                f"a single row does not fit into the memory of {self.device}; use a smaller model, or stop other "
                "programs that use this memory"
            )
        self.piece_rows = (rows + 1) // 2
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def _index_of(tensor: Tensor, tables: Sequence[Tensor]) -> int | None:
    """Return the index of a tensor among tables; None if it is not one of them."""
    return next((index for index, table in enumerate(tables) if table is tensor), None)
