"""What a model is told to make small, and how its outputs are read: the log-odds of label 1.

- `bce`: binary cross-entropy on labels; one output, which is the log-odds.
- `cross-entropy`: on ratings, an output a rating; those of the positive ratings against those of the others.
- `mse`: the squared error of one output as the rating, in steps of a rating; the reference system tried it.

The easy mistake is to compare losses of two kinds, or to weigh classes in one of them alone: every kind gives a loss a
row, and a positive row's counts `positive_weight` times.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from torch import Tensor
from torch.nn import functional as F

BCE, CROSS_ENTROPY, MSE = "bce", "cross-entropy", "mse"


class Scale(NamedTuple):
    """The ratings of a dataset. One that has labels alone has the ratings 0 and 1."""

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
        """From what `plain` wrote. Raises ValueError for anything else."""
        kind, scale, weight = plain.get("kind"), plain.get("scale"), plain.get("positive_weight")
        if not isinstance(kind, str) or kind not in (BCE, CROSS_ENTROPY, MSE):
            raise ValueError(f"its loss is {kind!r}, which is unknown")
        if type(scale) is not list or [type(each) for each in scale] != [int] * 3:
            raise ValueError("its ratings are no scale")
        low, high, positive_from = scale
        if not 0 <= low < positive_from <= high <= 255:
            raise ValueError("its ratings are no scale of two classes")
        if not isinstance(weight, (int, float)) or not 0 < weight < math.inf:
            raise ValueError("its weight of positive rows is no number above 0")
        return cls(kind=kind, scale=Scale(*scale), positive_weight=weight)

    def plain(self) -> dict[str, Any]:
        """In types that a model file can hold."""
        return {"kind": self.kind, "scale": list(self.scale), "positive_weight": self.positive_weight}

    @property
    def outputs(self) -> int:
        """Numbers that a model has to give for a row."""
        return self.scale.high - self.scale.low + 1 if self.kind == CROSS_ENTROPY else 1

    def sum(self, outputs: Tensor, labels: Tensor, ratings: Tensor) -> Tensor:
        """The losses of rows, added up: of `outputs` (rows, self.outputs), `labels` (rows,), `ratings` (rows,)."""
        if self.kind == CROSS_ENTROPY:
            each = F.cross_entropy(outputs, (ratings - self.scale.low).long(), reduction="none")
        elif self.kind == MSE:
            each = (outputs[:, 0] - (ratings - self._boundary).to(outputs.dtype)) ** 2
        else:
            each = F.binary_cross_entropy_with_logits(outputs[:, 0], labels.to(outputs.dtype), reduction="none")
        return (each * (1.0 + (self.positive_weight - 1.0) * labels.to(each.dtype))).sum()

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
