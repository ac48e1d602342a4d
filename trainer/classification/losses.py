"""The loss of a model, and the meaning of its outputs: the log-odds of label 1.

- `bce`: binary cross-entropy on labels; one output, which is the log-odds.
- `cross-entropy`: on ratings, with an output for each rating; the log-odds of the positive ratings against the others.
- `mse`: the squared error of one output as the rating, in steps of a rating; the reference system tried it.

Do not compare losses of two kinds. Every kind gives one loss per row, and that of a positive row counts
`positive_weight` times.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor
from torch.nn import functional as F

BCE, CROSS_ENTROPY, MSE = "bce", "cross-entropy", "mse"


class Scale(NamedTuple):
    """The ratings of a dataset. A dataset with labels alone has the ratings 0 and 1."""

    low: int
    high: int
    positive_from: int


@dataclass(frozen=True, kw_only=True)
class Loss:
    """One kind of loss (`bce`, `cross-entropy` or `mse`) on one scale of ratings."""

    kind: str
    scale: Scale
    positive_weight: float

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Self:
        """Restore a loss from the result of `plain`. Raises ValueError for anything else."""
        kind, scale, weight = plain.get("kind"), plain.get("scale"), plain.get("positive_weight")
        if not isinstance(kind, str) or kind not in (BCE, CROSS_ENTROPY, MSE):
            raise ValueError(f"its loss is {kind!r}, which is unknown")
        if type(scale) is not list or [type(each) for each in scale] != [int] * 3:
            raise ValueError("its ratings are not a scale")
        low, high, positive_from = scale
        if not 0 <= low < positive_from <= high <= 255:
            raise ValueError("its ratings are not a scale of two classes")
        if not isinstance(weight, (int, float)) or not 0 < weight < math.inf:
            raise ValueError("its weight of positive rows is not a number above 0")
        return cls(kind=kind, scale=Scale(*scale), positive_weight=weight)

    def plain(self) -> dict[str, Any]:
        """The loss in types that a model file can hold."""
        return {"kind": self.kind, "scale": list(self.scale), "positive_weight": self.positive_weight}

    @property
    def outputs(self) -> int:
        """The number of outputs per row that a model must have."""
        return self.scale.high - self.scale.low + 1 if self.kind == CROSS_ENTROPY else 1

    def sum(self, outputs: Tensor, labels: Tensor, ratings: Tensor) -> Tensor:
        """The sum of the losses of rows, of `outputs` (rows, self.outputs), `labels` (rows,) and `ratings` (rows,)."""
        if self.kind == CROSS_ENTROPY:
            each = F.cross_entropy(outputs, (ratings - self.scale.low).long(), reduction="none")
        elif self.kind == MSE:
            each = (outputs[:, 0] - (ratings - self._boundary).to(outputs.dtype)) ** 2
        else:
            each = F.binary_cross_entropy_with_logits(outputs[:, 0], labels.to(outputs.dtype), reduction="none")
        return (each * (1.0 + (self.positive_weight - 1.0) * labels.to(each.dtype))).sum()

    @property
    def classes(self) -> int:
        """The number of classes."""
        return 2

    def probabilities(self, outputs: Tensor) -> Tensor:
        """(rows, classes): the probability of each class; of two classes, by the log-odds of label 1."""
        odds = self.log_odds(outputs)
        return torch.stack((-odds, odds), 1).sigmoid()

    def log_odds(self, outputs: Tensor) -> Tensor:
        """(rows,): the log-odds of label 1 that `outputs` (rows, self.outputs) mean. Those of `mse` are as if ratings
        were off by one with a logistic distribution, so they are right in sign and order alone."""
        if self.kind == CROSS_ENTROPY:
            negative = self.scale.positive_from - self.scale.low
            return outputs[:, negative:].logsumexp(1) - outputs[:, :negative].logsumexp(1)
        if self.kind == MSE:
            return outputs[:, 0] * (math.pi / math.sqrt(3))
        return outputs[:, 0]

    @property
    def _boundary(self) -> float:
        """Between the classes: a model of `mse` gives ratings less this, so that what it begins with is undecided."""
        return self.scale.positive_from - 0.5
