"""The temperature of a trained model's probabilities, and the decision threshold of two classes, by validation rows.

Do not fit either on the rows that a model learns from, on which it is surer than on others, or on the test rows.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from trainer.classification.losses import MSE, Loss

ACCURACY, F1_MACRO, BALANCED = "accuracy", "f1-macro", "balanced"
"""What `--metric` chooses by."""
MOST_LOGITS = 1 << 24
"""The most numbers of validation rows that are looked at: one scalar needs no more."""
_LOG_INVERSES = (-10.0, 3.5)
"""The logarithms of the inverses of the largest temperature and of the smallest. What has learnt its rows by heart may
be a hundred times too sure of others."""
_HALVINGS = 40
_USUAL = 0.5
"""Logarithms of temperatures are about so far from 0. Few rows say little of it: of them it is nearer to 1."""
_SAME = 1e-12
"""Values of a metric that differ by less are equal: counts differ by 1."""


def calibrated(loss: Loss, logits: Tensor, labels: Tensor, metric: str) -> tuple[Loss, str | None]:
    """`loss` with the temperature that fits `logits` (n, classes) and `labels` (n,) and, of two classes, the threshold
    that `metric` asks for; and a note for the user, where the rows tell neither.

    The temperature of `mse`, whose outputs are no odds, stays 1.
    """
    if len(labels) == 0 or bool((labels == labels[0]).all()):
        return loss, "the validation rows are not of two classes or more: probabilities are not calibrated"
    fitted = loss if loss.kind == MSE else replace(loss, temperature=fit_temperature(logits, labels))
    if metric != ACCURACY and loss.classes == 2:
        probabilities = fitted.probabilities_of(logits)[:, 1]
        return replace(fitted, threshold=best_threshold(probabilities, labels, metric)), None
    return fitted, None


def fit_temperature(logits: Tensor, labels: Tensor) -> float:
    """The most probable temperature by the log loss of `logits` (n, classes) (Guo et al. 2017, section 4.2) and by what
    temperatures usually are; 1 where the log loss has no minimum, because all rows are right, or says nothing.

    The log loss is convex in the inverse of the temperature, so that its slope is 0 once, or nowhere.
    """
    labels = labels.long()[:, None]
    beyond = logits.double() - logits.double().gather(1, labels)  # (n, classes): 0 for the label

    def slope(log_inverse: float) -> float:
        """Of the log loss, by the inverse temperature."""
        return float(((beyond * math.exp(log_inverse)).softmax(1) * beyond).sum())

    def log_loss(inverse: float) -> float:
        return float((beyond * inverse).logsumexp(1).sum())

    low, high = _LOG_INVERSES
    if not slope(low) < 0 < slope(high):
        return 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rising = math.exp(middle) * slope(middle) + middle / _USUAL**2
        low, high = (middle, high) if rising < 0 else (low, middle)
    inverse = math.exp(low)
    return 1 / inverse if log_loss(inverse) < log_loss(1.0) else 1.0


def best_threshold(probabilities: Tensor, labels: Tensor, metric: str) -> float:
    """The threshold, between 0 and 1, above which `probabilities` (n,) of label 1 give the highest macro-F1 or balanced
    accuracy for `labels` (n,) of both classes. It lies in the middle between two of them, or is 0.5 where that is
    between them; of equally good thresholds it is the nearest to 0.5, and of equally near ones the lower one."""
    values, groups = torch.unique(probabilities.double(), return_inverse=True)  # (m,) ascending, (n,)
    each = [torch.bincount(groups[labels == label], minlength=len(values)) for label in (0, 1)]
    rows = torch.stack(each).double()  # (2, m)
    called = F.pad(rows.cumsum(1), (1, 0))  # (2, m + 1): rows of each label that are negative below each cut
    right = torch.stack([called[0], called[1, -1] - called[1]])  # (2, m + 1)
    there, predicted = rows.sum(1, keepdim=True), torch.stack([called.sum(0), called[:, -1].sum() - called.sum(0)])
    worth = (right / there if metric == BALANCED else 2 * right / (there + predicted)).mean(0)  # (m + 1,)
    edges = F.pad(values, (1, 1))
    edges[-1] = 1.0
    lower, upper = edges[:-1], edges[1:]
    cuts = torch.where((lower <= 0.5) & (upper > 0.5), 0.5, (lower + upper) / 2)  # (m + 1,)
    good = cuts[(worth >= worth[(cuts > 0) & (cuts < 1)].max() - _SAME) & (cuts > 0) & (cuts < 1)]
    return float(good[(good - 0.5).abs().argmin()])
