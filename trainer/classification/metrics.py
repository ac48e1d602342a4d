"""Classification metrics, computed from the confusion matrix.

Reviews are mostly positive, so compare a model's accuracy with the share of the most frequent class. The F1 of rare
classes and the balanced accuracy show whether the model learned anything. The confusion matrix of all rows is the sum
of the ranks' matrices. So ranks exchange numbers of rows, never averages.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from common.display import plural

TWO_CLASSES = ("negative", "positive")
"""Names of labels 0 and 1 in a dataset without class names."""
_FEW_ROWS = 200
"""Number of rows below which scores are unreliable: the 95% interval is up to 14 percentage points wide."""
_Z = 1.959964
"""The 97.5% quantile of the standard normal distribution."""
MOST_CLASSES = 1_000
"""Largest number of classes for training. With more classes, the confusion matrix would make the results too large."""


@dataclass(frozen=True)
class Confusion:
    """Confusion matrix (classes, classes): `counts[label][prediction]` is a number of rows."""

    counts: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, counts: Sequence[float]) -> Self:
        """Return the matrix for the flat `counts` (classes * classes,). The index of a count is classes * label +
        prediction."""
        classes = math.isqrt(len(counts))
        return cls(tuple(tuple(map(int, counts[first : first + classes])) for first in range(0, len(counts), classes)))

    @property
    def classes(self) -> int:
        return len(self.counts)

    @property
    def rows(self) -> int:
        return sum(self.occurrences)

    @property
    def right(self) -> list[int]:
        """Number of correctly predicted rows, by label."""
        return [counts[label] for label, counts in enumerate(self.counts)]

    @property
    def occurrences(self) -> list[int]:
        return [sum(counts) for counts in self.counts]

    @property
    def predictions(self) -> list[int]:
        return [sum(counts) for counts in zip(*self.counts, strict=True)]

    def plain(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the matrix as a dictionary for JSON. `names`: the class names, in the order of the labels."""
        return {"classes": list(names), "counts": [list(counts) for counts in self.counts]}


def accuracy(c: Confusion) -> float:
    """Return the share of rows that are predicted correctly."""
    return _ratio(sum(c.right), c.rows)


def accuracy_interval(c: Confusion) -> tuple[float, float]:
    """Return the 95% confidence interval of the accuracy: Wilson's score interval; 0 to 1 without rows.

    Wilson (1927), "Probable inference, the law of succession, and statistical inference". The formula is on
    https://rdrr.io/cran/cicalc/man/ci_prop_wilson.html (2026-11-30).
    """
    share, z2n = accuracy(c), _Z**2 / max(1, c.rows)
    half = math.sqrt(share * (1 - share) * z2n + z2n**2 / 4)
    ends = [(share + z2n / 2 + side) / (1 + z2n) for side in (-half, half)]
    return (max(0.0, ends[0]), min(1.0, ends[1])) if c.rows else (0.0, 1.0)


def few_rows_note(rows: int) -> str | None:
    """Return a sentence if an evaluation on this number of rows is unreliable; otherwise None."""
    if not 0 < rows < _FEW_ROWS:
        return None
    return (
        f"only {plural(rows, 'row')} to evaluate on, fewer than {_FEW_ROWS}: other texts can give very different scores"
    )


def majority(c: Confusion) -> float:
    """Return the accuracy of always predicting the most frequent label."""
    return _ratio(max(c.occurrences), c.rows)


def balanced_accuracy(c: Confusion) -> float:
    """Return the mean recall over the labels that occur."""
    return _mean(
        [right / occurrences for right, occurrences in zip(c.right, c.occurrences, strict=True) if occurrences]
    )


def macro_f1(c: Confusion) -> float:
    """Return the mean F1 over the labels that occur or are predicted."""
    each = zip(f1(c), c.occurrences, c.predictions, strict=True)
    return _mean([mean for mean, occurrences, predicted in each if occurrences or predicted])


def f1_positive(c: Confusion) -> float:
    """Return the F1 of label 1; 0 if no row is a true positive."""
    return f1(c)[1]


def f1_negative(c: Confusion) -> float:
    """Return the F1 of label 0; 0 if no row is a true negative."""
    return f1(c)[0]


MEASURES: Mapping[str, Callable[[Confusion], float]] = {
    measure.__name__: measure for measure in (accuracy, balanced_accuracy, macro_f1, majority)
}
"""Metrics for any number of classes, by name."""
MEASURES_OF_TWO: Mapping[str, Callable[[Confusion], float]] = {
    measure.__name__: measure for measure in (f1_positive, f1_negative)
}
"""Additional metrics for two classes, by name."""

CALIBRATION = ("log_loss", "uncalibrated_log_loss", "temperature", "threshold")
"""Values that are reported in addition to the metrics, for a model that was calibrated (calibration.py)."""


def measures_for(classes: int) -> Mapping[str, Callable[[Confusion], float]]:
    return {**MEASURES, **MEASURES_OF_TWO} if classes == 2 else MEASURES


def measures(c: Confusion) -> dict[str, float]:
    return {name: measure(c) for name, measure in measures_for(c.classes).items()}


def f1(c: Confusion) -> list[float]:
    """Return the F1 of each label: the harmonic mean of precision and recall; 0 for a label without true positives."""
    each = zip(c.right, c.occurrences, c.predictions, strict=True)
    return [_ratio(2 * right, occurrences + predicted) for right, occurrences, predicted in each]


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
