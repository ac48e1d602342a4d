"""Model selection: folds of the training rows, and scores of a model on held-out rows.

Equal texts are in the same fold, even if their labels differ. Otherwise a score would reward memorisation. A small
dataset has several folds, because a single fold, with a fifth of the rows, would not distinguish two models.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import log

import numpy as np
import numpy.typing as npt
import torch
from shoal_balance import IntArray
from torch import Tensor
from torch.nn import functional as F

from trainer.classification.calibration import ACCURACY, BALANCED, F1_MACRO, calibrate
from trainer.classification.data import TextData, place_rows
from trainer.classification.losses import Loss
from trainer.classification.metrics import Confusion, accuracy, balanced_accuracy, macro_f1
from trainer.classification.rows import Rows
from trainer.task import BlockScore

_MOST_ROWS = 100_000
"""Largest number of rows that folds use. More rows would make a search slower, and its choice hardly better."""
_PARTS = 5
"""Number of parts into which the rows are divided. Each fold holds out one part."""
_ENOUGH = 10_000
"""Number of held-out rows, in all folds together, that is enough: further folds are not used."""
_BLOCK_ROWS, _FEWEST_BLOCKS, _MOST_BLOCKS = 150, 5, 20
_CHUNK = 4096
_SPREAD = 0.5
"""Prior standard deviation of the logarithm of a fold's temperature. It is wide because no good guess of the
temperature exists. A search later uses the mean over folds, which is more certain than the temperature of a single
fold."""

_METRICS = {ACCURACY: accuracy, F1_MACRO: macro_f1, BALANCED: balanced_accuracy}


def folds(data: TextData, device: torch.device, *, rows_in: str) -> Sequence[TextData]:
    """Return folds of the training rows. In each fold, the held-out rows are the validation rows; the other rows are
    the training rows.

    Returns an empty sequence if a fold would have no held-out row. With two classes, it is also empty if a fold would
    have no training row of a class.
    """
    rows = data.training
    count = min(len(rows), _MOST_ROWS)
    numbers = (np.arange(count) * (len(rows) / count)).astype(np.int64)  # rows at equal distances
    parts = _parts(rows, numbers)
    needed = min(_PARTS, max(1, -(-_ENOUGH * _PARTS // count)))
    splits = []
    for part in range(needed):
        training, held_out = (rows.chosen(numbers[which]) for which in (parts != part, parts == part))
        if not len(held_out) or (len(data.classes) <= 2 and not 0 < int(training.labels.sum()) < len(training)):
            return ()
        training = place_rows(training, device, rows_in=rows_in)
        splits.append(replace(data, training=training, validation=held_out))
    return splits


def _parts(rows: Rows, numbers: IntArray) -> npt.NDArray[np.int64]:
    """Return the part (n,), from 0 to _PARTS - 1, of each row in `numbers` (n,). It is a hash of the row's words."""
    mixed = np.random.default_rng(0).integers(1 << 63, size=int(rows.tokens.max()) + 1, dtype=np.uint64)
    hashes = []
    for start in range(0, len(numbers), _CHUNK):
        batch = rows.whole_batch(numbers[start : start + _CHUNK], torch.device("cpu"))
        lengths = batch.lengths.numpy()
        hashes.append(np.add.reduceat(mixed[batch.tokens.numpy()], np.cumsum(lengths) - lengths))
    return ((np.concatenate(hashes) >> np.uint64(32)) % np.uint64(_PARTS)).astype(np.int64)


def block_scores(loss: Loss, logits: Tensor, labels: Tensor, metric: str) -> Sequence[BlockScore]:
    """Return one score for each block of rows. `logits` (n, classes), `labels` (n,): of all rows, n > 0.

    Each half of the blocks is calibrated on the other half. If `metric` is accuracy, the score is two thirds accuracy
    and one third macro-F1. With accuracy alone, a model that finds rows of a rare class can have no better score than a
    model that ignores this class. For equally frequent classes, accuracy and macro-F1 are nearly equal.
    """
    blocks = max(1, min(len(labels), max(_FEWEST_BLOCKS, min(_MOST_BLOCKS, len(labels) // _BLOCK_ROWS))))
    half = torch.arange(len(labels)) % blocks % 2
    cells, losses = torch.zeros_like(labels), torch.zeros(len(labels), dtype=logits.dtype)
    for half_rows in (half == 0, half == 1):
        fitted, _ = calibrate(loss, logits[~half_rows], labels[~half_rows], metric, spread=_SPREAD)
        probabilities = fitted.probabilities_of(logits[half_rows])  # (own, classes)
        predictions = (probabilities[:, 1] > fitted.threshold).long() if loss.classes == 2 else probabilities.argmax(1)
        cells[half_rows] = loss.classes * labels[half_rows] + predictions
        losses[half_rows] = F.nll_loss(probabilities.clamp(min=1e-12).log(), labels[half_rows], reduction="none")
    log_temperature = log(calibrate(loss, logits, labels, metric, spread=_SPREAD)[0].temperature)
    scores = []
    for block in range(blocks):  # a block is every `blocks`-th row, because rows can be sorted by label
        counts = torch.bincount(cells[block::blocks], minlength=loss.classes**2)
        confusion = Confusion.of(counts.tolist())
        worth = _METRICS[metric](confusion)
        score = (2 * worth + macro_f1(confusion)) / 3 if metric == ACCURACY else worth
        scores.append(BlockScore(score, worth, float(losses[block::blocks].mean()), log_temperature))
    return scores
