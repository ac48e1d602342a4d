"""Local steps of a rank between two synchronisations of the vectors (`--mode average:K`).

A step of the run consists of K local steps of each rank. All ranks start them from the same vectors. Afterwards, each
rank restores these vectors, and passes the changes of its parameters (deltas) to the exchange like gradients. The
optimiser then applies the sum of all ranks' deltas with learning rate 1. With Adagrad, the sums of squared gradients
are tables of the model, and their changes are also summed over all ranks.

The sum of the ranks' deltas is a good step for a rare word, because only few ranks changed its vector. For a frequent
word the sum would overshoot, because all ranks moved the vector in the same direction. So the mean of the deltas is
used for frequent words. Between these cases, the factor depends on the expected frequency of the word
(`Sampling.steadiness`).
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
"""Threshold of expected occurrences of a word between two synchronisations. More frequent words move by less than the
sum of the ranks' deltas.

With 2 ranks and 50 local steps of 8 rows, thresholds of 20 and 50 learn as much as a single rank. The plain sum and the
plain mean of all deltas learn less.
"""


class LocalSteps:
    """Function that takes local steps, and returns parameter deltas in place of gradients (`DirectGradients`).

    The steps are those of Adagrad if the model includes the state of Adagrad, otherwise those of SGD.
    """

    fewest = 1  # a single thread takes all steps sequentially

    def __init__(self, gradients: SkipGramGradients, *, rows: int, clip_norm: float) -> None:
        """`rows`: the number of rows in each local step. `clip_norm`: the norm to which larger gradients of a local
        step are scaled down; 0: never."""
        self._gradients, self.rows, self._clip_norm = gradients, rows, clip_norm
        self.rate = 0.0
        """Learning rate of the local steps."""

    def __call__(self, model: nn.Module, numbers: IntArray, batch_rows: int, step: int, timer: StepTimer) -> Piece:
        """Return the loss and the parameter deltas. During the call, other threads must not use the model."""
        assert isinstance(model, SkipGram)
        tables = model.tables
        squares = [each.detach() for each in model.squares]
        starts = [_Start(table) for table in (*tables, *squares)]
        loss = torch.zeros((), device=tables[0].device)
        try:
            for begin in range(0, len(numbers), self.rows):
                rows = numbers[begin : begin + self.rows]
                part, table_gradients = self._gradients.compute_rows(model, rows, self.rows, step)
                loss += part * (self.rows / batch_rows)
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
                start.restore()  # because the same training rows are computed again in smaller pieces
            raise
        deltas = [start.take_deltas() for start in starts]
        factors = self._gradients.rules.steadiness(batch_rows, steady=STEADY, least=len(numbers) / batch_rows)
        timer.end_phase(BACKWARD)
        return Piece(loss, (), [[each] for each in (*scale_gradients(deltas[:2], factors, 1.0), *deltas[2:])])


class _Start:
    """Initial values of the changed rows of a table."""

    def __init__(self, table: Tensor) -> None:
        self._table = table
        self._known = torch.zeros(len(table), dtype=torch.bool, device=table.device)
        self._ids: list[Tensor] = []
        self._rows: list[Tensor] = []

    def keep(self, ids: Tensor) -> None:
        """Save the rows with these ids (n,), unless they are saved already. An id can occur several times."""
        if computed_by_numba(self._table):
            copies = kernels().copy_new_rows(self._table.numpy(), ids.numpy(), self._known.numpy())
            new, rows = map(torch.from_numpy, copies)
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
        """Restore the saved rows. Return their initial values minus their final values: this difference has the sign of
        a gradient."""
        ids, before = torch.cat(self._ids), torch.cat(self._rows)
        if computed_by_numba(self._table):
            delta = torch.from_numpy(kernels().restore_rows(self._table.numpy(), ids.numpy(), before.numpy()))
        else:
            delta = before - self._table[ids]
            self._table[ids] = before
        return FactoredGradient(ids, torch.ones(len(ids), dtype=torch.int64, device=ids.device), delta)
