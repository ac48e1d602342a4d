"""Losses of classifiers, and the conversion of a model's outputs to class probabilities.

- `bce`: binary cross-entropy on labels. The model has one output: the log-odds of label 1.
- `cross-entropy`: cross-entropy on ratings. The model has one output for each rating. The log-odds of label 1 compare
  the positive ratings with the negative ratings.
- `mse`: squared error on ratings, in steps of the scale. The model has one output, which predicts the rating.
- `softmax`: cross-entropy on labels. The model has one output for each class. With more than two classes, this is the
  only kind.

Losses of different kinds are not comparable. For two classes, the loss of a positive row is multiplied by
`positive_weight`. With more classes, rows have no weights.
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
_COUNTED = 1 << 20  # number of rows that are counted at once
_LARGEST = 2.0**63
"""Largest weight or temperature in a model file, because torch rejects larger integers. The smallest temperature is the
inverse of this number."""


class Scale(NamedTuple):
    """Rating scale of a dataset. A dataset that has labels but no ratings uses the ratings 0 and 1."""

    low: int
    high: int
    positive_from: int


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Loss of one `kind` (`bce`, `cross-entropy`, `mse` or `softmax`) on the rating scale of a dataset.

    With more than two classes, the kind is `softmax`, and the weight of positive rows is 1.
    """

    kind: str
    scale: Scale
    positive_weight: float
    classes: int = 2
    """Number of classes."""
    temperature: float = 1.0
    """Number by which log-odds and logits are divided before they are converted to probabilities (calibration.py)."""
    threshold: float = 0.5
    """Probability of label 1 above which label 1 is predicted. It is used only with two classes."""

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Self:
        """Restore a loss from a result of `plain`. Raises ValueError if a field is missing or invalid."""
        kind, scale, weight = plain.get("kind"), plain.get("scale"), plain.get("positive_weight")
        if not isinstance(kind, str) or kind not in (BCE, CROSS_ENTROPY, MSE, SOFTMAX):
            raise ValueError(f"its loss is {kind!r}, which is unknown")
        if type(scale) is not list or [type(each) for each in scale] != [int] * 3:
            raise ValueError("its rating scale is not a list of three integers")
        low, high, positive_from = scale
        if not 0 <= low < positive_from <= high <= 255:
            raise ValueError("its rating scale does not have two classes")
        if not isinstance(weight, (int, float)) or not 0 < weight <= _LARGEST:
            raise ValueError("its weight of positive rows is not a number above 0")
        classes: Any = plain.get("classes")
        if type(classes) is not int or classes < 2:
            raise ValueError("its number of classes is not an integer of at least 2")
        if classes > 2 and (kind, weight) != (SOFTMAX, 1):
            raise ValueError(f"its loss is {kind} with a weight of {weight}, which is not a loss for {classes} classes")
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
        """Return the loss as a dictionary of types that JSON can represent, for a model file."""
        return {**vars(self), "scale": list(self.scale)}

    @property
    def outputs(self) -> int:
        """Number of outputs per row that a model must have."""
        if self.kind == SOFTMAX:
            return self.classes
        return self.scale.high - self.scale.low + 1 if self.kind == CROSS_ENTROPY else 1

    def constant_outputs(self, labels: Labels, ratings: Labels) -> Tensor:
        """Return the outputs (outputs,) that, used for all rows, give about the lowest total loss.

        `labels` (rows,), `ratings` (rows,): the labels and the ratings of the rows. Each class or rating is counted as
        if it had one more row (add-one smoothing), so that no probability is 0.
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
        """Return the sum of the losses of rows with `outputs` (rows, self.outputs), `labels` (rows,) and `ratings`
        (rows,)."""
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
        """Return the same loss as `sum`, from NumPy arrays, and its gradient with respect to `outputs` (rows,
        self.outputs). Autograd is not used."""
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
        """Return the calibrated class probabilities (rows, classes) for a model's `outputs` (rows, self.outputs)."""
        return self.probabilities_of(self.logits(outputs))

    def probabilities_of(self, logits: Tensor) -> Tensor:
        """Return the calibrated class probabilities (rows, classes) for uncalibrated `logits` (rows, classes)."""
        logits = logits / self.temperature
        if self.classes > 2:
            return logits.softmax(1)
        return torch.stack([-logits[:, 1], logits[:, 1]], dim=1).sigmoid()

    def predictions(self, outputs: Tensor) -> Tensor:
        """Return the predicted labels (rows,) int64 for a model's `outputs` (rows, self.outputs).

        With two classes, label 1 is predicted if its probability is above the threshold. With more classes, the most
        probable label is predicted, and in a tie the smallest.
        """
        if self.classes > 2:
            return outputs.argmax(1)  # argmax returns the first maximum
        return (self.probabilities(outputs)[:, 1].double() > self.threshold).long()

    def log_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the log loss: the sum over rows of -log of the calibrated probability of the row's label."""
        return F.cross_entropy(self.logits(outputs) / self.temperature, labels.long(), reduction="sum")

    def logits(self, outputs: Tensor) -> Tensor:
        """Return uncalibrated logits (rows, classes), which are log probabilities plus a constant per row.

        With two classes, these are 0 and the log-odds of label 1.
        """
        return outputs if self.classes > 2 else F.pad(self.log_odds(outputs)[:, None], (1, 0))

    def log_odds(self, outputs: Tensor) -> Tensor:
        """Return the log-odds (rows,) of label 1 from `outputs` (rows, self.outputs), for two classes.

        For `mse`, the log-odds assume that the rating has a logistic error with standard deviation 1. So only the sign
        and the order of these log-odds are meaningful.
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
        """Rating halfway between the two classes.

        An `mse` model predicts the rating minus this boundary, so that an untrained model prefers neither class.
        """
        return self.scale.positive_from - 0.5


@cache
def _kernels() -> Any:
    """Return the module of losses for CPUs (loss_kernels.py)."""
    from trainer.classification import loss_kernels  # imported here because numba takes long to load

    return loss_kernels
