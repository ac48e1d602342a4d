"""The gradients of fastText's model by their formulas, on a CPU: what autograd finds, without most of its time.

A step on short texts takes microseconds to compute, and autograd, which makes an object for each operation, a hundred
times as long. Change this together with `FastText.classify`: a test holds both equal.
"""

import numpy as np
import torch
from shoal_balance import IntArray
from torch import nn

from trainer.classification.losses import Loss
from trainer.classification.models.fasttext import FastText
from trainer.classification.rows import RaggedRows, Rows
from trainer.clock import BACKWARD, FORWARD, StepTimer
from trainer.computing import dropout
from trainer.computing.gradients import DirectGradients, Piece
from trainer.computing.row_gradients import Means


def direct_gradients(
    model: nn.Module, rows: Rows, loss: Loss, *, seed: int, device: torch.device
) -> DirectGradients | None:
    """What computes the gradients of `loss` for these rows, if the model, the rows and the device are of the kind for
    which the formulas stand here; else None. `seed`: that of dropout."""
    if not (isinstance(model, FastText) and model.has_words_alone and isinstance(rows, RaggedRows)):
        return None
    if device.type != "cpu" or rows.device_tokens is not None:
        return None
    return _Direct(rows, loss, seed=seed, keyed=dropout.drops(model))


class _Direct:
    """The formulas, as `DirectGradients`."""

    fewest = 512

    def __init__(self, rows: RaggedRows, loss: Loss, *, seed: int, keyed: bool) -> None:
        """`keyed`: whether numbers of a text's mean are dropped."""
        self._rows, self._loss, self._seed, self._keyed = rows, loss, seed, keyed

    def __call__(self, model: nn.Module, numbers: IntArray, of: int, step: int, timer: StepTimer) -> Piece:
        """See `DirectGradients`."""
        assert isinstance(model, FastText)
        rows, loss = self._rows, self._loss
        means = model.means(rows, numbers)
        values = means.values
        if self._keyed:
            mask = model.dropout.pool.numpy()[dropout.keys(self._seed, step, numbers)] * values.dtype.type(
                1.0 / (1.0 - model.dropout.share)
            )
            values = values * mask
        weights = model.last.weight.detach().numpy()  # (outputs, columns)
        outputs = values @ weights.T
        timer.end_phase(FORWARD)
        total, by_outputs = loss.sum_with_gradient(outputs, rows.labels[numbers], rows.ratings[numbers])
        by_outputs /= by_outputs.dtype.type(of)
        by_means = by_outputs @ weights
        if self._keyed:
            by_means *= mask
        made_of = Means(*map(torch.from_numpy, (means.ids, means.lengths, by_means)))
        timer.end_phase(BACKWARD)
        scalar = torch.from_numpy(np.asarray(total / of, dtype=weights.dtype))
        return Piece(scalar, (torch.from_numpy(by_outputs.T @ values),), [[made_of]])
