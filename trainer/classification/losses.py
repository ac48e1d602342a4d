"""Losses of classifiers, and the conversion of a model's outputs to class probabilities.

- `bce`: binary cross-entropy on labels; one output, which is the log-odds.
- `cross-entropy`: on ratings, with one output for each rating. The log-odds compare the positive ratings with the
  others.
- `mse`: squared error of one output, the rating, in steps of the scale; the reference system tried it.
- `softmax`: cross-entropy on labels, with one output for each class; the only kind for more than two classes.

Do not compare losses of two kinds. Every kind gives one loss per row. For two classes, the loss of a positive row is
multiplied by `positive_weight`; more classes have no weights.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

Floats = npt.NDArray[np.floating[Any]]
Labels = npt.NDArray[np.unsignedinteger[Any]]

BCE, CROSS_ENTROPY, MSE, SOFTMAX = "bce", "cross-entropy", "mse", "softmax"
_COUNTED = 1 << 20  # rows counted at once
_LARGEST = 2.0**63
"""Largest weight or temperature in a model file, and the inverse of the smallest; torch rejects larger integers."""


class Scale(NamedTuple):
    """Rating scale of a dataset. A dataset that has labels but no ratings uses the ratings 0 and 1."""

    low: int
    high: int
    positive_from: int


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Loss of one kind (`bce`, `cross-entropy`, `mse` or `softmax`) on one rating scale.

    For more than two classes it is `softmax` with weight 1.
    """

    kind: str
    scale: Scale
    positive_weight: float
    classes: int = 2
    """Number of classes."""
    temperature: float = 1.0
    """Divisor of log-odds and logits before their conversion to probabilities (calibration.py)."""
    threshold: float = 0.5
    """For two classes: probability of label 1 above which label 1 is predicted."""

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Self:
        """Restore a loss from the result of `plain`. Raises ValueError for any other dictionary."""
        kind, scale, weight = plain.get("kind"), plain.get("scale"), plain.get("positive_weight")
        if not isinstance(kind, str) or kind not in (BCE, CROSS_ENTROPY, MSE, SOFTMAX):
            raise ValueError(f"its loss is {kind!r}, which is unknown")
        if type(scale) is not list or [type(each) for each in scale] != [int] * 3:
            raise ValueError("its ratings are not a scale")
        low, high, positive_from = scale
        if not 0 <= low < positive_from <= high <= 255:
            raise ValueError("its ratings are not a scale of two classes")
        if not isinstance(weight, (int, float)) or not 0 < weight <= _LARGEST:
            raise ValueError("its weight of positive rows is not a number above 0")
        classes: Any = plain.get("classes")
        if type(classes) is not int or classes < 2:
            raise ValueError("its classes are not a number of at least 2")
        if classes > 2 and (kind, weight) != (SOFTMAX, 1):
            raise ValueError(f"its loss is {kind} with a weight of {weight}, which is not one of {classes} classes")
        temperature: Any = plain.get("temperature")
        if type(temperature) not in (int, float) or not 1 / _LARGEST <= temperature <= _LARGEST:
            raise ValueError("its temperature is not a number above 0")
        threshold: Any = plain.get("threshold")
        if type(threshold) not in (int, float) or not 0 < threshold < 1:
            raise ValueError("its threshold is not a number between 0 and 1")
        return cls(
            kind=kind,
            scale=Scale(*scale),
            positive_weight=float(weight),
            classes=classes,
            temperature=float(temperature),
            threshold=threshold,
        )

    def plain(self) -> dict[str, Any]:
        """Return the loss as types that a model file can contain."""
        return {**vars(self), "scale": list(self.scale)}

    @property
    def outputs(self) -> int:
        """Number of outputs per row that a model must have."""
        if self.kind == SOFTMAX:
            return self.classes
        return self.scale.high - self.scale.low + 1 if self.kind == CROSS_ENTROPY else 1

    def constant_outputs(self, labels: Labels, ratings: Labels) -> Tensor:
        """Return the constant outputs (outputs,) with about the lowest total loss over rows with `labels` (rows,) and
        `ratings` (rows,).

        Add-one smoothing: each class or rating counts one row more, so that no probability is 0.
        """
        of_labels = self.kind in (BCE, SOFTMAX)
        values, low, positive = (labels, 0, 1) if of_labels else (ratings, self.scale.low, self.scale.positive_from)
        every = np.arange(self.classes if of_labels else self.scale.high + 1)
        counts = np.zeros(len(every))
        for start in range(0, len(values), _COUNTED):
            counts += np.bincount(values[start : start + _COUNTED], minlength=len(every))
        rows = (counts * np.where(every >= positive, self.positive_weight, 1.0))[low:]
        if self.kind == MSE:
            return torch.tensor([np.average(every[low:], weights=rows) - self._boundary])
        logs = torch.from_numpy(np.log((1 + rows) / (1 + rows).sum()))
        return logs[1:] - logs[:1] if self.kind == BCE else logs

    def sum(self, outputs: Tensor, labels: Tensor, ratings: Tensor) -> Tensor:
        """Return the sum of the losses of rows: `outputs` (rows, self.outputs), `labels` (rows,), `ratings` (rows,)."""
        if self.kind == CROSS_ENTROPY:
            each = F.cross_entropy(outputs, (ratings - self.scale.low).long(), reduction="none")
        elif self.kind == SOFTMAX:
            each = F.cross_entropy(outputs, labels.long(), reduction="none")
        elif self.kind == MSE:
            each = (outputs[:, 0] - (ratings - self._boundary).to(outputs.dtype)) ** 2
        else:
            each = F.binary_cross_entropy_with_logits(outputs[:, 0], labels.to(outputs.dtype), reduction="none")
        return (each * (1.0 + (self.positive_weight - 1.0) * labels.to(each.dtype))).sum()

    def sum_with_gradient(self, outputs: Floats, labels: Labels, ratings: Labels) -> tuple[float, Floats]:
        """Return `sum` of NumPy arrays, and its gradient with respect to `outputs` (rows, self.outputs), without
        autograd."""
        weight = outputs.dtype.type(self.positive_weight)
        gradients = np.empty_like(outputs)
        if self.kind == BCE:
            total = _kernels().bce(outputs, labels, weight, gradients)
        elif self.kind == MSE:
            total = _kernels().mse(outputs, ratings, labels, weight, outputs.dtype.type(self._boundary), gradients)
        elif self.kind == CROSS_ENTROPY:
            total = _kernels().softmax(outputs, ratings, self.scale.low, labels, weight, gradients)
        else:
            total = _kernels().softmax(outputs, labels, 0, labels, weight, gradients)
        return float(total), gradients

    def probabilities(self, outputs: Tensor) -> Tensor:
        """Return the calibrated probability of each class, (rows, classes)."""
        return self.probabilities_of(self.logits(outputs))

    def probabilities_of(self, logits: Tensor) -> Tensor:
        """Return the calibrated probability of each class, (rows, classes), from `logits` (rows, classes)."""
        logits = logits / self.temperature
        if self.classes > 2:
            return logits.softmax(1)
        return torch.stack([-logits[:, 1], logits[:, 1]], dim=1).sigmoid()

    def predictions(self, outputs: Tensor) -> Tensor:
        """Return the predicted labels (rows,) int64.

        For two classes, label 1 if its probability is above the threshold. For more classes, the most probable label,
        and in a tie the smallest.
        """
        if self.classes > 2:
            return outputs.argmax(1)  # argmax returns the first maximum
        return (self.probabilities(outputs)[:, 1].double() > self.threshold).long()

    def log_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the sum over rows of the negative logarithm of the label's calibrated probability."""
        return F.cross_entropy(self.logits(outputs) / self.temperature, labels.long(), reduction="sum")

    def logits(self, outputs: Tensor) -> Tensor:
        """Return uncalibrated logits (rows, classes): log probabilities up to a constant per row. For two classes, 0
        and the log-odds."""
        return outputs if self.classes > 2 else F.pad(self.log_odds(outputs)[:, None], (1, 0))

    def log_odds(self, outputs: Tensor) -> Tensor:
        """Return the log-odds (rows,) of label 1 from `outputs` (rows, self.outputs), for two classes.

        For `mse`, they assume a logistic error of the rating with standard deviation 1. Only their sign and order are
        meaningful.
        """
        if self.kind == CROSS_ENTROPY:
            negative = self.scale.positive_from - self.scale.low
            return outputs[:, negative:].logsumexp(1) - outputs[:, :negative].logsumexp(1)
        if self.kind == MSE:
            return outputs[:, 0] * (math.pi / math.sqrt(3))
        if self.kind == SOFTMAX:
            return outputs[:, 1] - outputs[:, 0]
        return outputs[:, 0]

    @property
    def _boundary(self) -> float:
        """Rating between the classes. An `mse` model predicts the rating minus this, so that it starts undecided."""
        return self.scale.positive_from - 0.5


@cache
def _kernels() -> Any:
    """Return the losses for CPUs (loss_kernels.py)."""
    from trainer.classification import loss_kernels  # imported here because numba takes long to load

    return loss_kernels
