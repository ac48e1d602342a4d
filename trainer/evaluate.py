"""How a model does on rows that it does not learn from, all ranks together.

A large test set takes minutes, in which the run may be asked to stop. The easy mistake is to stop on one rank alone, or
to ask the others after each batch, of which ranks have unequal numbers: they ask in rounds, as many on every rank.
"""

from collections.abc import Callable

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from corpus.counted import plural
from trainer import peers
from trainer.data import Batch, Rows
from trainer.errors import SPLIT_ALIKE, RankError, TrainingError
from trainer.losses import Loss
from trainer.metrics import Confusion
from trainer.models.classifier import Classifier
from trainer.order import IntArray

_BATCH, _GPU_BATCH = 512, 8192
_ROUND = 8192
"""Rows of a rank between two agreements to go on: below a second of work on a CPU."""


def evaluate(
    model: Classifier, rows: Rows, *, split: IntArray, loss: Loss, stop: Callable[[], bool]
) -> tuple[float, Confusion] | None:
    """The mean loss and the confusion matrix over all rows, the same on every rank.

    `split` (ranks,) sums to the number of rows: each rank classifies its part of them, in this order. Label 1 is
    called where its probability is above one half. None, on every rank, once `stop` says on any rank that it was asked
    to stop. Raises TrainingError when other ranks are gone, or split otherwise, and RankError when not one row fits
    into memory.
    """
    device = model.embedding.weight.device
    rank = dist.get_rank()
    end = int(split[: rank + 1].sum())
    numbers = np.arange(end - int(split[rank]), end)  # (own rows,)
    numbers = numbers[np.argsort(rows.lengths[numbers], kind="stable")]
    sums = torch.zeros(5, dtype=torch.float64)  # loss, then rows by 2 * label + call
    size = _GPU_BATCH if device.type == "cuda" else _BATCH
    model.eval()
    stopped = False
    with torch.inference_mode():
        for first in range(0, int(split.max()), _ROUND):
            if stopped := _any_rank(stop()):
                break
            waiting = numbers[first : first + _ROUND]
            while len(waiting):
                some, after = waiting[:size], waiting[size:]
                try:
                    sums += _judge(model, rows.batch(some, device), loss)
                except torch.OutOfMemoryError:
                    if size == 1:
                        raise RankError(f"not one row to judge fits into the memory of {device}") from None
                    size = (min(size, len(some)) + 1) // 2
                    continue
                waiting = after
    model.train()
    if stopped:
        return None
    with peers.needed("in an evaluation"):
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


def _judge(model: Classifier, batch: Batch, loss: Loss) -> Tensor:
    """(5,): the sum of losses, and rows by 2 * label + call."""
    outputs = model(batch.tokens, batch.lengths)  # (n, outputs)
    losses = loss.sum(outputs, batch.labels, batch.ratings)
    kinds = torch.bincount(2 * batch.labels.long() + (loss.log_odds(outputs) > 0), minlength=4)  # (4,)
    return torch.cat([losses[None].double(), kinds.double()]).cpu()


def _any_rank(mine: bool) -> bool:
    told = torch.tensor(int(mine))
    with peers.needed("in an evaluation"):
        dist.all_reduce(told, op=dist.ReduceOp.MAX)
    return bool(told)
