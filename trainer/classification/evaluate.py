"""Evaluation of a model on held-out rows, by all ranks together.

The evaluation of a large test set takes minutes, and the run can be asked to stop in this time. All ranks must stop
together. They cannot agree to stop after each batch, because their numbers of batches differ. So each rank computes its
rows in rounds. All ranks have the same number of rounds, and agree after each round whether to continue.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby, islice
from typing import NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from shoal_balance import IntArray
from torch import Tensor

from common.display import plural
from common.errors import TrainingError
from trainer.classification.losses import Loss
from trainer.classification.metrics import Confusion
from trainer.classification.models.classifier import Classifier
from trainer.classification.rows import Rows
from trainer.computing.threads import Threads
from trainer.distributed import collectives
from trainer.rank_errors import SAME_SPLIT_ADVICE, RankError

_BATCH, _GPU_BATCH = 512, 1 << 16
_LOSSES = 3
_ROUND, _GPU_ROUND = 8192, 8 * _GPU_BATCH
"""Number of rows that a rank evaluates in one round: less than a second of work on a CPU, eight batches on a GPU."""


class Mistake(NamedTuple):
    """Row with a wrong prediction. Row, label and prediction are numbers."""

    row: int
    label: int
    prediction: int
    probability: float
    """Calibrated probability of the prediction."""


class Evaluation(NamedTuple):
    """Quality of a model on some rows. Losses are means over the rows."""

    loss: float
    """Mean of the loss that training minimises."""
    confusion: Confusion
    log_loss: float
    uncalibrated: float
    """Log loss without calibration, at temperature 1."""
    mistakes: Sequence[Mistake]
    """For each label, the wrong predictions with the highest probabilities, the highest first."""


def evaluate(
    model: Classifier,
    rows: Rows,
    *,
    split: IntArray,
    loss: Loss,
    threads: Threads,
    stop: Callable[[], bool],
    logits: Tensor | None = None,
    mistakes: int = 0,
) -> Evaluation | None:
    """Return the evaluation over all rows, the same on every rank. Once `stop` returns True on any rank, all ranks
    return None.

    `split` (ranks,): the number of consecutive rows that each rank evaluates; its sum must be the number of rows.
    `threads`: CPU threads of this rank. `logits` (rows, classes): zeros, which the function overwrites with the logits.
    `mistakes`: the largest number of wrong predictions to return for each label.
    Raises TrainingError if other ranks are lost or have a different `split`. Raises RankError if a single row does not
    fit into memory.
    """
    rank = dist.get_rank()
    end = int(split[: rank + 1].sum())
    numbers = np.arange(end - int(split[rank]), end)  # (rows of this rank,)
    numbers = numbers[np.argsort(rows.lengths[numbers], kind="stable")]
    evaluator = _Evaluator(model, rows, loss, logits, mistakes)
    sums = evaluator.zeros()
    model.eval()
    stopped = False
    size = _GPU_ROUND if evaluator.on_gpu else _ROUND  # the same on all ranks: either all have GPUs, or none has
    for first in range(0, int(split.max()), size):
        if stopped := _any_rank(stop()):
            break
        some = numbers[first : first + size]
        for thread_sums in threads.map(evaluator, [some[thread :: threads.count] for thread in range(threads.count)]):
            sums += thread_sums
    model.train()
    if stopped:
        return None
    with collectives.convert_errors("in an evaluation"):
        dist.all_reduce(sums)
        found = collectives.gather(list(map(tuple, evaluator.mistakes)), len(split), None) if mistakes else []
        if logits is not None:
            dist.all_reduce(logits)  # one rank contributes a row's logits, and all other ranks contribute zeros
    confusion = Confusion.of(sums[_LOSSES:].tolist())
    if confusion.rows != len(rows):
        raise TrainingError(
            f"the ranks evaluated {plural(confusion.rows, 'row')}, but there are {len(rows):,}: {SAME_SPLIT_ADVICE}"
        )
    mean, log_loss, uncalibrated = (sums[:_LOSSES] / len(rows)).tolist()
    surest = _surest((Mistake(*each) for of_rank in found for each in of_rank), mistakes)
    return Evaluation(mean, confusion, log_loss, uncalibrated, surest)


def _surest(mistakes: Iterable[Mistake], most: int) -> list[Mistake]:
    ordered = sorted(mistakes, key=lambda each: (each.label, -each.probability, each.row))
    return [each for _, of_label in groupby(ordered, lambda each: each.label) for each in islice(of_label, most)]


class _Evaluator:
    def __init__(self, model: Classifier, rows: Rows, loss: Loss, logits: Tensor | None, most: int) -> None:
        self._model, self._rows, self._loss, self._logits = model, rows, loss, logits
        self._most = most
        self.mistakes: list[Mistake] = []
        """For each label, the `most` surest mistakes of each call. Threads append to the list."""
        self._uncalibrated = replace(loss, temperature=1.0)
        self._device = next(model.parameters()).device
        self.on_gpu = self._device.type == "cuda"
        self._size = _GPU_BATCH if self.on_gpu else _BATCH

    def __call__(self, numbers: IntArray) -> Tensor:
        """Return sums (3 + classes * classes,) over the rows `numbers` (n,).

        The first three are the sums of losses, log losses and uncalibrated log losses. The others are the confusion
        matrix: numbers of rows, at index classes * label + prediction.
        """
        mistakes: list[Mistake] = []
        sums = self.zeros().to(self._device)  # sum on a GPU, so that the host does not wait for each batch
        with torch.inference_mode():
            while len(numbers):
                try:
                    sums += self._batch(numbers[: self._size], mistakes)
                except torch.OutOfMemoryError:
                    if self._size == 1:
                        raise RankError(
                            f"a single row to evaluate does not fit into the memory of {self._device}; use a smaller "
                            "model, or stop other programs that use this memory"
                        ) from None
                    self._size = (min(self._size, len(numbers)) + 1) // 2
                    continue
                numbers = numbers[self._size :]
        self.mistakes.extend(_surest(mistakes, self._most))
        return sums.cpu()

    def zeros(self) -> Tensor:
        """Return the initial sums, which are 0."""
        return torch.zeros(_LOSSES + self._loss.classes**2, dtype=torch.float64)

    def _batch(self, numbers: IntArray, mistakes: list[Mistake]) -> Tensor:
        batch_of = self._rows.whole_batch if self._model.reads_whole_texts else self._rows.batch
        batch = batch_of(numbers, self._device, keys=numbers if self._most or self._logits is not None else None)
        outputs = self._model(batch.tokens, batch.lengths)  # (n, outputs)
        if self._logits is not None and batch.keys is not None:  # `keys` are the row numbers in the batch's order
            self._logits[batch.keys.cpu()] = self._loss.logits(outputs).cpu().to(self._logits.dtype)
        losses = torch.stack(
            [
                self._loss.sum(outputs, batch.labels, batch.ratings),
                self._loss.log_loss(outputs, batch.labels),
                self._uncalibrated.log_loss(outputs, batch.labels),
            ]
        )
        classes = self._loss.classes
        labels, predictions = batch.labels.long(), self._loss.predictions(outputs)  # (n,) each
        if self._most and batch.keys is not None:
            probabilities = self._loss.probabilities(outputs).gather(1, predictions[:, None])[:, 0]
            columns = (batch.keys, labels, predictions, probabilities)
            wrong = (labels != predictions).nonzero()[:, 0]
            mistakes += map(Mistake._make, zip(*(column[wrong].tolist() for column in columns), strict=True))
        cells = classes * labels + predictions  # (n,)
        counts = torch.bincount(cells, minlength=classes**2)  # (classes * classes,)
        return torch.cat([losses.double(), counts.double()])


def _any_rank(requested: bool) -> bool:
    request = torch.tensor(int(requested))
    with collectives.convert_errors("in an evaluation"):
        dist.all_reduce(request, op=dist.ReduceOp.MAX)
    return bool(request)
