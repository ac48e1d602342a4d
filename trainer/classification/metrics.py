"""How good a classifier is, computed from its confusion matrix alone.

Reviews are mostly positive, so the accuracy must be compared with the majority's share; the negative class's F1 and the
balanced accuracy show whether anything was learnt. The matrix of a whole set is the sum of its parts' matrices. So
ranks exchange counts, never averages.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, kw_only=True)
class Confusion:
    """Rows by label and prediction; `true_negative` are the rows of label 0 with prediction 0."""

    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int

    @classmethod
    def of(cls, counts: Sequence[float]) -> Self:
        """From the numbers of rows by 2 * label + prediction."""
        true_negative, false_positive, false_negative, true_positive = map(int, counts)
        return cls(
            true_positive=true_positive,
            false_positive=false_positive,
            false_negative=false_negative,
            true_negative=true_negative,
        )

    @property
    def rows(self) -> int:
        return self.true_positive + self.false_positive + self.false_negative + self.true_negative


def accuracy(c: Confusion) -> float:
    """The share of rows with the right prediction."""
    return _ratio(c.true_positive + c.true_negative, c.rows)


def majority(c: Confusion) -> float:
    """The accuracy of always predicting the more frequent label."""
    positive = c.true_positive + c.false_negative
    return _ratio(max(positive, c.rows - positive), c.rows)


def balanced_accuracy(c: Confusion) -> float:
    """The mean of the recalls of the labels that occur."""
    positive, negative = c.true_positive + c.false_negative, c.true_negative + c.false_positive
    recalls = [
        hits / occurrences
        for hits, occurrences in ((c.true_positive, positive), (c.true_negative, negative))
        if occurrences
    ]
    return sum(recalls) / len(recalls) if recalls else 0.0


def f1_positive(c: Confusion) -> float:
    """The harmonic mean of precision and recall of label 1; 0 when there are no true positives."""
    return _ratio(2 * c.true_positive, 2 * c.true_positive + c.false_positive + c.false_negative)


def f1_negative(c: Confusion) -> float:
    """The harmonic mean of precision and recall of label 0; 0 when there are no true negatives."""
    return _ratio(2 * c.true_negative, 2 * c.true_negative + c.false_negative + c.false_positive)


MEASURES: Mapping[str, Callable[[Confusion], float]] = {
    measure.__name__: measure for measure in (accuracy, balanced_accuracy, f1_positive, f1_negative, majority)
}
"""All of the above by name."""


def measures(c: Confusion) -> dict[str, float]:
    """The value of each of MEASURES."""
    return {name: measure(c) for name, measure in MEASURES.items()}


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
