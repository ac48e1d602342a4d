"""Steps that a rank makes alone, between two synchronisations of the ranks' vectors (--mode average:K).

A step of the run is K steps of each rank, on rows of its own, from the vectors that all ranks had before. What a rank
gives to the exchange are its parameter deltas, as if they were gradients; the vectors themselves are put back. The
optimiser then takes the sum over the ranks, at a rate of 1. With Adagrad the sums of squared gradients are tables of
the model, and are treated alike: what all ranks have added is added up.

The sum of the ranks' deltas is a good step for a rare word: few ranks have moved it at all. For a frequent word it
would overshoot, because all ranks have moved it in the same direction: of that the mean is taken. Between them the
factor follows from how often the word is expected (`Sampling.steadiness`).
"""

import math

import torch
from shoal_balance import IntArray
from torch import Tensor, nn

from trainer.clock import BACKWARD, StepTimer
from trainer.computing import row_updates
from trainer.computing.gradients import Piece
from trainer.computing.row_gradients import Means, TouchedRows, computed_by_numba, kernels
from trainer.embeddings.skipgram import SkipGram, SkipGramGradients, scaled

STEADY = 20.0
"""A word that is expected more often between two synchronisations is moved by less than the sum of the deltas. With 2
ranks and 50 steps of 8 rows, 20 and 50 learn what one rank learns; the sum, or the mean, of all deltas less."""


class LocalSteps:
    """Steps by SGD, or by Adagrad where the model has its state, that return parameter deltas as `DirectGradients`."""

    fewest = 1  # one thread makes them, one after the other

    def __init__(self, gradients: SkipGramGradients, *, rows: int, clip_norm: float) -> None:
        """`rows` of each of a rank's own steps. `clip_norm`: shorten longer gradients of theirs to this; 0: never."""
        self._gradients, self.rows, self._clip_norm = gradients, rows, clip_norm
        self.rate = 0.0
        """The learning rate of these steps."""

    def __call__(self, model: nn.Module, numbers: IntArray, of: int, step: int, timer: StepTimer) -> Piece:
        """The loss, and the parameter deltas. Between the call and the end nobody else may use the model."""
        assert isinstance(model, SkipGram)
        tables = model.centres.detach(), model.contexts.detach()
        squares = [each.detach() for each in model.squares]
        starts = [_Start(table) for table in (*tables, *squares)]
        loss = torch.zeros((), device=tables[0].device)
        try:
            for begin in range(0, len(numbers), self.rows):
                rows = numbers[begin : begin + self.rows]
                part, means = self._gradients.of_rows(model, rows, self.rows, step)
                loss += part * (self.rows / of)
                norm = math.hypot(*(float(each.gradients.norm()) for each in means))
                rate = self.rate * (min(1.0, self._clip_norm / norm) if self._clip_norm and norm else 1.0)
                for start, each in zip(starts, [*means, *means[: len(squares)]], strict=True):
                    start.keep(each.ids)
                for number, (table, each) in enumerate(zip(tables, means, strict=True)):
                    touched = TouchedRows(each.ids.long(), each.gradients)
                    if squares:
                        row_updates.adagrad(table, squares[number], touched, rate, learns=True)
                    else:
                        row_updates.sgd(table, touched, rate)
        except torch.OutOfMemoryError:
            for start in starts:
                start.put_back()  # the same rows come again, in smaller pieces
            raise
        ways = [start.way_back() for start in starts]
        factors = self._gradients.rules.steadiness(of, steady=STEADY, least=len(numbers) / of)
        timer.end_phase(BACKWARD)
        return Piece(loss, (), [[each] for each in (*scaled(ways[:2], factors, 1.0), *ways[2:])])


class _Start:
    """The rows of a table as they were, of those that are changed."""

    def __init__(self, table: Tensor) -> None:
        self._table = table
        self._known = torch.zeros(len(table), dtype=torch.bool, device=table.device)
        self._ids: list[Tensor] = []
        self._rows: list[Tensor] = []

    def keep(self, ids: Tensor) -> None:
        """Keep the rows with these ids (n,), which may be there several times, unless they are kept already."""
        if computed_by_numba(self._table):
            found = kernels().keep_rows(self._table.numpy(), ids.numpy(), self._known.numpy())
            new, rows = map(torch.from_numpy, found)
        else:
            new = torch.unique(ids[~self._known[ids]])
            self._known[new] = True
            rows = self._table[new]
        self._ids.append(new)
        self._rows.append(rows)

    def put_back(self) -> None:
        for ids, rows in zip(self._ids, self._rows, strict=True):
            self._table[ids.long()] = rows

    def way_back(self) -> Means:
        """How far the rows have moved, with the sign of a gradient; they are put back."""
        ids, before = torch.cat(self._ids), torch.cat(self._rows)
        if computed_by_numba(self._table):
            way = torch.from_numpy(kernels().put_back_rows(self._table.numpy(), ids.numpy(), before.numpy()))
        else:
            way = before - self._table[ids]
            self._table[ids] = before
        return Means(ids, torch.ones(len(ids), dtype=torch.int64, device=ids.device), way)
