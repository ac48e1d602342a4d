"""Calibration on validation rows: the temperature of the probabilities, and the decision threshold of two classes.

Fit both of them on validation rows only. On its training rows the model is overconfident, and test rows must not
influence the model.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from trainer.classification.losses import MSE, Loss

ACCURACY, F1_MACRO, BALANCED = "accuracy", "f1-macro", "balanced"
"""Values of `--metric`."""
MOST_LOGITS = 1 << 24
"""Largest number of logits that are used for fitting. More logits would not improve the fit of a single number."""
_LOG_INVERSES = (-10.0, 3.5)
"""Range of the logarithm of the inverse temperature. A model that has memorised its training rows can be overconfident
by a factor of a hundred."""
_HALVINGS = 40
_SPREAD = 0.2
"""Prior standard deviation of the temperature's logarithm."""
_TOLERANCE = 1e-12
"""Largest difference between values of a metric that count as equal. Real differences are larger, because metrics are
ratios of row counts."""


def calibrate(
    loss: Loss, logits: Tensor, labels: Tensor, metric: str, *, is_scaled: bool = False
) -> tuple[Loss, str | None]:
    """Return `loss` with a temperature and a threshold that fit the validation rows.

    If fitting is impossible, return `loss` unchanged, and a message for the user; otherwise, there is no message
    (None). `logits` (n, classes), `labels` (n,): the logits and the labels of the validation rows. The temperature of
    an `mse` loss is not changed, because its outputs are not odds. For two classes, the threshold is the best one for
    `metric`; if `metric` is accuracy, the threshold is not changed. `is_scaled`: the model itself has fitted the scale
    of its outputs (strength.py), so the temperature is not changed either.
    """
    if is_scaled and metric == ACCURACY:
        return loss, None
    if len(labels) == 0 or bool((labels == labels[0]).all()):
        return loss, "probabilities are not calibrated, because the validation rows do not contain two or more classes"
    is_fitted = is_scaled or loss.kind == MSE
    fitted = loss if is_fitted else replace(loss, temperature=fit_temperature(logits, labels))
    if metric != ACCURACY and loss.classes == 2:
        probabilities = fitted.probabilities_of(logits)[:, 1]
        return replace(fitted, threshold=best_threshold(probabilities, labels, metric)), None
    return fitted, None


def fit_temperature(logits: Tensor, labels: Tensor) -> float:
    """Return the maximum a posteriori temperature for `logits` (n, classes) and `labels` (n,).

    The likelihood is the log loss of the logits (Guo et al. 2017, section 4.2). The prior of the temperature's
    logarithm is normal, with mean 0. The log loss with the returned temperature is not larger than with temperature 1.
    For very small logits, the result can be a local optimum.
    """
    labels = labels.long()[:, None]
    beyond = logits.double() - logits.double().gather(1, labels)  # (n, classes): 0 for the row's label

    def slope(log_inverse: float) -> float:
        """Return the derivative of the log loss with respect to the inverse temperature."""
        return float(((beyond * math.exp(log_inverse)).softmax(1) * beyond).sum())

    low, high = _LOG_INVERSES
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rising = math.exp(middle) * slope(middle) + middle / _SPREAD**2
        low, high = (middle, high) if rising < 0 else (low, middle)
    return math.exp(-low)


def best_threshold(probabilities: Tensor, labels: Tensor, metric: str) -> float:
    """Return the threshold in (0, 1) with the highest macro-F1 or balanced accuracy.

    `probabilities` (n,): each row's probability of label 1. `labels` (n,): must contain both classes. A row is
    predicted positive if its probability is above the threshold. Candidates are 0.5 and the midpoints between
    neighbouring probabilities. Of equally good candidates, the nearest to 0.5 is returned; of two equally near ones,
    the lower.
    """
    values, groups = torch.unique(probabilities.double(), return_inverse=True)  # (m,) ascending, (n,)
    each = [torch.bincount(groups[labels == label], minlength=len(values)) for label in (0, 1)]
    rows = torch.stack(each).double()  # (2, m)
    called = F.pad(rows.cumsum(1), (1, 0))  # (2, m + 1): rows of each label that are predicted negative at each cut
    right = torch.stack([called[0], called[1, -1] - called[1]])  # (2, m + 1)
    occurrences, predicted = (
        rows.sum(1, keepdim=True),
        torch.stack([called.sum(0), called[:, -1].sum() - called.sum(0)]),
    )
    worth = (right / occurrences if metric == BALANCED else 2 * right / (occurrences + predicted)).mean(0)  # (m + 1,)
    edges = F.pad(values, (1, 1))
    edges[-1] = 1.0
    lower, upper = edges[:-1], edges[1:]
    cuts = torch.where((lower <= 0.5) & (upper > 0.5), 0.5, (lower + upper) / 2)  # (m + 1,)
    good = cuts[(worth >= worth[(cuts > 0) & (cuts < 1)].max() - _TOLERANCE) & (cuts > 0) & (cuts < 1)]
    return float(good[(good - 0.5).abs().argmin()])
