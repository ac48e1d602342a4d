"""How a model does on rows that it does not learn from, all ranks together.

A large test set takes minutes, in which the run may be asked to stop. The easy mistake is to stop on one rank alone, or
to ask the others after each batch, of which ranks have unequal numbers: they ask in rounds, as many on every rank.
"""

from collections.abc import Callable

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from corpus.display import plural
from trainer import collectives
from trainer.classification.data import Rows
from trainer.classification.losses import Loss
from trainer.classification.metrics import Confusion
from trainer.classification.models.classifier import Classifier
from trainer.errors import SPLIT_ALIKE, RankError, TrainingError
from trainer.order import IntArray
from trainer.threads import Threads

_BATCH, _GPU_BATCH = 512, 8192
_ROUND = 8192
"""Rows of a rank between two agreements to go on: below a second of work on a CPU."""


def evaluate(
    model: Classifier, rows: Rows, *, split: IntArray, loss: Loss, threads: Threads, stop: Callable[[], bool]
) -> tuple[float, Confusion] | None:
    """The mean loss and the confusion matrix over all rows, the same on every rank.

    `split` (ranks,) sums to the number of rows: each rank classifies its part of them, in this order, on a CPU by its
    `threads`. Label 1 is called where its probability is above one half. None, on every rank, once `stop` says on any
    rank that it was asked to stop. Raises TrainingError when other ranks are gone, or split otherwise, and RankError
    when not one row fits into memory.
    """
    rank = dist.get_rank()
    end = int(split[: rank + 1].sum())
    numbers = np.arange(end - int(split[rank]), end)  # (own rows,)
    numbers = numbers[np.argsort(rows.lengths[numbers], kind="stable")]
    judge = _Judge(model, rows, loss)
    sums = torch.zeros(5, dtype=torch.float64)  # loss, then rows by 2 * label + call
    model.eval()
    stopped = False
    for first in range(0, int(split.max()), _ROUND):
        if stopped := _any_rank(stop()):
            break
        some = numbers[first : first + _ROUND]
        for found in threads.map(judge, [some[thread :: threads.count] for thread in range(threads.count)]):
            sums += found
    model.train()
    if stopped:
        return None
    with collectives.reporting("in an evaluation"):
        dist.all_reduce(sums)
    loss_sum, *counts = sums.tolist()
    true_negative, false_positive, false_negative, true_positive = (int(count) for count in counts)
    confusion = Confusion(
        true_positive=true_positive,
        false_positive=false_positive,
        false_negative=false_negative,
        true_negative=true_negative,
    )
    if confusion.rows != len(rows):
        raise TrainingError(
            f"the ranks judged {plural(confusion.rows, 'row')}, and not the {len(rows):,} that there are: {SPLIT_ALIKE}"
        )
    return loss_sum / len(rows), confusion


class _Judge:
    def __init__(self, model: Classifier, rows: Rows, loss: Loss) -> None:
        self._model, self._rows, self._loss = model, rows, loss
        self._device = model.embedding.weight.device
        self._size = _GPU_BATCH if self._device.type == "cuda" else _BATCH

    def __call__(self, numbers: IntArray) -> Tensor:
        """(5,): the sum of the losses of these rows (n,), and how many there are by 2 * label + call."""
        sums = torch.zeros(5, dtype=torch.float64)
        with torch.inference_mode():
            while len(numbers):
                try:
                    sums += self._batch(numbers[: self._size])
                except torch.OutOfMemoryError:
                    if self._size == 1:
                        raise RankError(f"not one row to judge fits into the memory of {self._device}") from None
                    self._size = (min(self._size, len(numbers)) + 1) // 2
                    continue
                numbers = numbers[self._size :]
        return sums

    def _batch(self, numbers: IntArray) -> Tensor:
        batch = self._rows.batch(numbers, self._device)
        outputs = self._model(batch.tokens, batch.lengths)  # (n, outputs)
        losses = self._loss.sum(outputs, batch.labels, batch.ratings)
        kinds = torch.bincount(2 * batch.labels.long() + (self._loss.log_odds(outputs) > 0), minlength=4)  # (4,)
        return torch.cat([losses[None].double(), kinds.double()]).cpu()


def _any_rank(mine: bool) -> bool:
    told = torch.tensor(int(mine))
    with collectives.reporting("in an evaluation"):
        dist.all_reduce(told, op=dist.ReduceOp.MAX)
    return bool(told)
