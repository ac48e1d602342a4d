"""Local steps of a rank between two synchronisations of the vectors (`--mode average:K`).

A step of the run consists of K steps of each rank, which start from common vectors. Each rank passes its parameter
deltas to the exchange like gradients, and restores the vectors. The optimiser then applies the sum over the ranks with
rate 1. With Adagrad, the sums of squared gradients are tables of the model and are treated in the same way: increments
of all ranks are summed.

The sum of the ranks' deltas is a good step for a rare word, which only few ranks moved. For a frequent word it would
overshoot, because all ranks moved it in the same direction: for it, the mean is used. In between, the factor depends on
the expected frequency of the word (`Sampling.steadiness`).
"""

import math

import torch
from shoal_balance import IntArray
from torch import Tensor, nn

from trainer.clock import BACKWARD, StepTimer
from trainer.computing import row_updates
from trainer.computing.gradients import Piece
from trainer.computing.row_gradients import FactoredGradient, TouchedRows, computed_by_numba, kernels
from trainer.embeddings.skipgram import SkipGram, SkipGramGradients, scale_gradients

STEADY = 20.0
"""Expected occurrences between two synchronisations above which a word moves by less than the sum of deltas.

With 2 ranks and 50 steps of 8 rows, 20 and 50 learn as much as one rank. The sum and the mean of all deltas learn less.
"""


class LocalSteps:
    """Local steps of SGD, or of Adagrad if the model has its state, which return parameter deltas as
    `DirectGradients`."""

    fewest = 1  # one thread makes all steps sequentially

    def __init__(self, gradients: SkipGramGradients, *, rows: int, clip_norm: float) -> None:
        """`rows`: the rows of each local step. `clip_norm`: scale longer gradients of a local step down to this norm;
        0: never."""
        self._gradients, self.rows, self._clip_norm = gradients, rows, clip_norm
        self.rate = 0.0
        """Learning rate of the local steps."""

    def __call__(self, model: nn.Module, numbers: IntArray, of: int, step: int, timer: StepTimer) -> Piece:
        """Return the loss and the parameter deltas. During the call, no other thread may use the model."""
        assert isinstance(model, SkipGram)
        tables = model.centres.detach(), model.contexts.detach()
        squares = [each.detach() for each in model.squares]
        starts = [_Start(table) for table in (*tables, *squares)]
        loss = torch.zeros((), device=tables[0].device)
        try:
            for begin in range(0, len(numbers), self.rows):
                rows = numbers[begin : begin + self.rows]
                part, table_gradients = self._gradients.compute_rows(model, rows, self.rows, step)
                loss += part * (self.rows / of)
                norm = math.hypot(*(float(each.gradients.norm()) for each in table_gradients))
                rate = self.rate * (min(1.0, self._clip_norm / norm) if self._clip_norm and norm else 1.0)
                for start, each in zip(starts, [*table_gradients, *table_gradients[: len(squares)]], strict=True):
                    start.keep(each.ids)
                for number, (table, each) in enumerate(zip(tables, table_gradients, strict=True)):
                    touched = TouchedRows(each.ids.long(), each.gradients)
                    if squares:
                        row_updates.adagrad(table, squares[number], touched, rate, learns=True)
                    else:
                        row_updates.sgd(table, touched, rate)
        except torch.OutOfMemoryError:
            for start in starts:
                start.restore()  # the same rows are computed again in smaller pieces
            raise
        deltas = [start.take_deltas() for start in starts]
        factors = self._gradients.rules.steadiness(of, steady=STEADY, least=len(numbers) / of)
        timer.end_phase(BACKWARD)
        return Piece(loss, (), [[each] for each in (*scale_gradients(deltas[:2], factors, 1.0), *deltas[2:])])


class _Start:
    """Initial values of those rows of a table that change."""

    def __init__(self, table: Tensor) -> None:
        self._table = table
        self._known = torch.zeros(len(table), dtype=torch.bool, device=table.device)
        self._ids: list[Tensor] = []
        self._rows: list[Tensor] = []

    def keep(self, ids: Tensor) -> None:
        """Save the rows with these ids (n,), which may repeat, unless they are saved already."""
        if computed_by_numba(self._table):
            found = kernels().copy_new_rows(self._table.numpy(), ids.numpy(), self._known.numpy())
            new, rows = map(torch.from_numpy, found)
        else:
            new = torch.unique(ids[~self._known[ids]])
            self._known[new] = True
            rows = self._table[new]
        self._ids.append(new)
        self._rows.append(rows)

    def restore(self) -> None:
        for ids, rows in zip(self._ids, self._rows, strict=True):
            self._table[ids.long()] = rows

    def take_deltas(self) -> FactoredGradient:
        """Restore the rows. Return their movement with the sign of a gradient."""
        ids, before = torch.cat(self._ids), torch.cat(self._rows)
        if computed_by_numba(self._table):
            delta = torch.from_numpy(kernels().restore_rows(self._table.numpy(), ids.numpy(), before.numpy()))
        else:
            delta = before - self._table[ids]
            self._table[ids] = before
        return FactoredGradient(ids, torch.ones(len(ids), dtype=torch.int64, device=ids.device), delta)
