"""How a model does on rows that it does not learn from, all ranks together."""

import numpy as np
import torch
import torch.distributed as dist
from torch.nn import functional as F

from trainer.data import Rows
from trainer.metrics import Confusion
from trainer.models.classifier import Classifier
from trainer.order import IntArray

_BATCH = 512


def evaluate(model: Classifier, rows: Rows, *, split: IntArray, positive_weight: float) -> tuple[float, Confusion]:
    """The mean loss and the confusion matrix over all rows, the same on every rank.

    `split` (ranks,) sums to the number of rows: each rank classifies its part of them, in this order. Label 1 is
    called where its probability is above one half.
    """
    device = model.embedding.weight.device
    rank = dist.get_rank()
    stop = int(split[: rank + 1].sum())
    numbers = np.arange(stop - int(split[rank]), stop)  # (own rows,)
    numbers = numbers[np.argsort(rows.lengths[numbers], kind="stable")]
    weight = torch.tensor(positive_weight, dtype=model.embedding.weight.dtype, device=device)
    sums = torch.zeros(5, dtype=torch.float64)  # loss, then rows by 2 * label + call
    model.eval()
    with torch.inference_mode():
        for start in range(0, len(numbers), _BATCH):
            batch = rows.batch(numbers[start : start + _BATCH], device)
            logits = model(batch.tokens, batch.lengths)
            labels = batch.labels.to(logits.dtype)
            loss = F.binary_cross_entropy_with_logits(logits, labels, pos_weight=weight, reduction="sum")
            kinds = torch.bincount(2 * labels.long() + (logits > 0), minlength=4)  # (4,)
            sums += torch.cat([loss[None].double(), kinds.double()]).cpu()
    model.train()
    dist.all_reduce(sums)
    loss_sum, *counts = sums.tolist()
    true_negative, false_positive, false_negative, true_positive = (int(count) for count in counts)
    return loss_sum / len(rows), Confusion(
        true_positive=true_positive,
        false_positive=false_positive,
        false_negative=false_negative,
        true_negative=true_negative,
    )
