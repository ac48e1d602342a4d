"""How a model does on rows that it does not learn from, all ranks together.

A large test set takes minutes, in which the run may be asked to stop. The easy mistake is to stop on one rank alone, or
to ask the others after each batch, of which ranks have unequal numbers: they ask in rounds, as many on every rank.
"""

from collections.abc import Callable

import numpy as np
import torch
import torch.distributed as dist

from trainer import peers
from trainer.data import Rows
from trainer.losses import Loss
from trainer.metrics import Confusion
from trainer.models.classifier import Classifier
from trainer.order import IntArray

_BATCH, _GPU_BATCH = 512, 8192
_ROUND = 8192
"""Rows of a rank between two agreements to go on: below a second of work on a CPU."""


def evaluate(
    model: Classifier, rows: Rows, *, split: IntArray, loss: Loss, fits: int, stop: Callable[[], bool]
) -> tuple[float, Confusion] | None:
    """The mean loss and the confusion matrix over all rows, the same on every rank.

    `split` (ranks,) sums to the number of rows: each rank classifies its part of them, in this order. Label 1 is
    called where its probability is above one half. `fits`: rows that this rank could train on at once, which are then
    not too many for its memory; 0 where that is not known. None, on every rank, once `stop` says on any rank that it
    was asked to stop. Raises TrainingError when other ranks are gone.
    """
    device = model.embedding.weight.device
    rank = dist.get_rank()
    end = int(split[: rank + 1].sum())
    numbers = np.arange(end - int(split[rank]), end)  # (own rows,)
    numbers = numbers[np.argsort(rows.lengths[numbers], kind="stable")]
    sums = torch.zeros(5, dtype=torch.float64)  # loss, then rows by 2 * label + call
    most = _GPU_BATCH if device.type == "cuda" else _BATCH
    size = min(fits or most, most)
    model.eval()
    stopped = False
    with torch.inference_mode():
        for first in range(0, int(split.max()), _ROUND):
            if stopped := _any_rank(stop()):
                break
            for start in range(first, min(first + _ROUND, len(numbers)), size):
                batch = rows.batch(numbers[start : min(start + size, first + _ROUND)], device)
                outputs = model(batch.tokens, batch.lengths)  # (n, outputs)
                losses = loss.sum(outputs, batch.labels, batch.ratings)
                kinds = torch.bincount(2 * batch.labels.long() + (loss.log_odds(outputs) > 0), minlength=4)  # (4,)
                sums += torch.cat([losses[None].double(), kinds.double()]).cpu()
    model.train()
    if stopped:
        return None
    with peers.needed("in an evaluation"):
        dist.all_reduce(sums)
    loss_sum, *counts = sums.tolist()
    true_negative, false_positive, false_negative, true_positive = (int(count) for count in counts)
    return loss_sum / len(rows), Confusion(
        true_positive=true_positive,
        false_positive=false_positive,
        false_negative=false_negative,
        true_negative=true_negative,
    )


def _any_rank(mine: bool) -> bool:
    told = torch.tensor(int(mine))
    with peers.needed("in an evaluation"):
        dist.all_reduce(told, op=dist.ReduceOp.MAX)
    return bool(told)
