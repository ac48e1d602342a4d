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
_SPREAD = 0.2
"""The standard deviation of a temperature's logarithm around that of the usual one."""
_SAME = 1e-12
"""Values of a metric that differ by less are equal: counts differ by 1."""


def calibrated(
    loss: Loss, logits: Tensor, labels: Tensor, metric: str, *, spread: float = _SPREAD
) -> tuple[Loss, str | None]:
    """`loss` with the temperature that fits `logits` (n, classes) and `labels` (n,) and, of two classes, the threshold
    that `metric` asks for; and a note for the user, where the rows tell neither.

    The temperature that `loss` has is the usual one (`fit_temperature`). That of `mse`, whose outputs are no odds,
    stays.
    """
    if len(labels) == 0 or bool((labels == labels[0]).all()):
        return loss, "the validation rows are not of two classes or more: probabilities are not calibrated"
    fitted = (
        loss
        if loss.kind == MSE
        else replace(loss, temperature=fit_temperature(logits, labels, loss.temperature, spread))
    )
    if metric != ACCURACY and loss.classes == 2:
        probabilities = fitted.probabilities_of(logits)[:, 1]
        return replace(fitted, threshold=best_threshold(probabilities, labels, metric)), None
    return fitted, None


def fit_temperature(logits: Tensor, labels: Tensor, usual: float = 1.0, spread: float = _SPREAD) -> float:
    """The most probable temperature, by the log loss of `logits` (n, classes) (Guo et al. 2017, section 4.2) and by how
    near it is to the `usual` one: the standard deviation of the logarithm of their ratio is `spread`. Of logits that
    are far too small it is one of several local optima. The log loss of these rows is at most that at the usual
    temperature."""
    labels = labels.long()[:, None]
    beyond = logits.double() - logits.double().gather(1, labels)  # (n, classes): 0 for the label

    def slope(log_inverse: float) -> float:
        """Of the log loss, by the inverse temperature."""
        return float(((beyond * math.exp(log_inverse)).softmax(1) * beyond).sum())

    low, high = _LOG_INVERSES
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rising = math.exp(middle) * slope(middle) + (middle + math.log(usual)) / spread**2
        low, high = (middle, high) if rising < 0 else (low, middle)
    return math.exp(-low)


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
