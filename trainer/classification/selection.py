"""Model selection: folds of the training rows, and scores of a model on held-out rows.

Equal texts are in the same fold, whatever their labels: otherwise the score would reward memorisation. If there are few
rows, several folds are used, because a fifth of the rows would not distinguish two models.
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
"""Largest number of rows of all folds together: more rows make a search slower and hardly better."""
_PARTS = 5
"""Number of parts of the rows. Each fold holds out one part."""
_ENOUGH = 10_000
"""Wanted number of held-out rows in all folds together."""
_BLOCK_ROWS, _FEWEST_BLOCKS, _MOST_BLOCKS = 150, 5, 20
_CHUNK = 4096
_SPREAD = 0.5
"""Prior spread of the temperatures of folds: they are unknown, and their mean is more certain than each of them."""

_METRICS = {ACCURACY: accuracy, F1_MACRO: macro_f1, BALANCED: balanced_accuracy}


def folds(data: TextData, device: torch.device, *, rows_in: str) -> Sequence[TextData]:
    """Return splits of the training rows, with the held-out rows as validation rows.

    Returns an empty sequence if a split would have no training row of one of two classes.
    """
    rows = data.training
    count = min(len(rows), _MOST_ROWS)
    numbers = (np.arange(count) * (len(rows) / count)).astype(np.int64)  # at equal distances
    parts = _parts(rows, numbers)
    needed = min(_PARTS, max(1, -(-_ENOUGH * _PARTS // count)))
    found = []
    for part in range(needed):
        training, held_out = (rows.chosen(numbers[which]) for which in (parts != part, parts == part))
        if not len(held_out) or (len(data.classes) <= 2 and not 0 < int(training.labels.sum()) < len(training)):
            return ()
        training = place_rows(training, device, rows_in=rows_in)
        found.append(replace(data, training=training, validation=held_out))
    return found


def _parts(rows: Rows, numbers: IntArray) -> npt.NDArray[np.int64]:
    """Return the part (n,), of _PARTS, of each row of `numbers` (n,), by a hash of its words."""
    mixed = np.random.default_rng(0).integers(1 << 63, size=int(rows.tokens.max()) + 1, dtype=np.uint64)
    found = []
    for start in range(0, len(numbers), _CHUNK):
        batch = rows.whole_batch(numbers[start : start + _CHUNK], torch.device("cpu"))
        lengths = batch.lengths.numpy()
        found.append(np.add.reduceat(mixed[batch.tokens.numpy()], np.cumsum(lengths) - lengths))
    return ((np.concatenate(found) >> np.uint64(32)) % np.uint64(_PARTS)).astype(np.int64)


def block_scores(loss: Loss, logits: Tensor, labels: Tensor, metric: str) -> Sequence[BlockScore]:
    """Return the scores of blocks of rows with `logits` (n, classes) and `labels` (n,), n > 0.

    Each half of the blocks is calibrated on the other half. If the metric is accuracy, the score is two thirds accuracy
    and one third macro-F1. By accuracy alone, a model that finds rows of a rare class may look no better than one that
    ignores the class. For equally frequent classes, both measures are nearly equal.
    """
    blocks = max(1, min(len(labels), max(_FEWEST_BLOCKS, min(_MOST_BLOCKS, len(labels) // _BLOCK_ROWS))))
    half = torch.arange(len(labels)) % blocks % 2
    cells, losses = torch.zeros_like(labels), torch.zeros(len(labels), dtype=logits.dtype)
    for own in (half == 0, half == 1):
        fitted, _ = calibrate(loss, logits[~own], labels[~own], metric, spread=_SPREAD)
        found = fitted.probabilities_of(logits[own])  # (own, classes)
        predictions = (found[:, 1] > fitted.threshold).long() if loss.classes == 2 else found.argmax(1)
        cells[own] = loss.classes * labels[own] + predictions
        losses[own] = F.nll_loss(found.clamp(min=1e-12).log(), labels[own], reduction="none")
    log_temperature = log(calibrate(loss, logits, labels, metric, spread=_SPREAD)[0].temperature)
    scores = []
    for block in range(blocks):  # strided blocks, because rows may be sorted by label
        counts = torch.bincount(cells[block::blocks], minlength=loss.classes**2)
        confusion = Confusion.of(counts.tolist())
        worth = _METRICS[metric](confusion)
        score = (2 * worth + macro_f1(confusion)) / 3 if metric == ACCURACY else worth
        scores.append(BlockScore(score, worth, float(losses[block::blocks].mean()), log_temperature))
    return scores
