"""Scores a classifier on texts with known ratings or labels: accuracy, calibration, and measures of each class.

A text without known words has no prediction. It counts as unknown, and is left out of all scores.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Any

from corpus.dataset_settings import Settings
from corpus.reading.acceptance import first_positive_code
from corpus.reading.formats import OTHER
from trainer.classification.labelling import Prediction
from trainer.classification.metrics import Confusion, accuracy_interval, f1, measures

_BINS = 10
_TINY = 1e-12


@dataclass(kw_only=True)
class ScoredAnswers:
    """Counts of predictions, by the code that represents a text's rating or label.

    Which codes are positive is known only after the last text. So the counts are kept by code until `scores` is
    called.
    """

    classes: tuple[str, ...] = ()
    """Class names by label, for a model with more than two classes; the codes are then the labels."""
    unknown: int = 0
    """Number of texts without a prediction."""
    others: int = 0
    """Number of texts with a prediction, but without a known rating or label."""
    losses: defaultdict[tuple[int, int], float] = field(default_factory=lambda: defaultdict(float))
    """Sum of log losses by code and label: the loss of the texts with this code if this label were correct."""
    counts: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    """Number of texts by code, predicted label and bin of the predicted label's probability."""
    sums: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    """For each bin, the sum of the predicted labels' probabilities."""

    def add(self, codes: Sequence[int], predictions: Sequence[Prediction]) -> None:
        labels = {name: label for label, name in enumerate(self.classes)}
        for code, each in zip(codes, predictions, strict=True):
            if each.label is None:
                self.unknown += 1
                continue
            if code == OTHER:
                self.others += 1
                continue
            predicted = labels[each.label] if isinstance(each.label, str) else each.label
            for label, probability in enumerate(each.probabilities):
                self.losses[code, label] -= log(max(probability, _TINY))
            probability = each.probabilities[predicted]
            place = min(_BINS - 1, int(probability * _BINS))
            self.counts[code, predicted, place] += 1
            self.sums[place] += probability

    def scores(self, settings: Settings, names: Sequence[str]) -> dict[str, Any]:
        """Return the measures over the scored texts. At least one text must be scored.

        `names`: class names by label. Raises DataError if it is ambiguous which label is positive.
        """
        label_of = self._labels(settings)
        pairs, texts, right = Counter[tuple[int, int]](), Counter[int](), Counter[int]()
        for (code, predicted, place), number in self.counts.items():
            label = label_of(code)
            pairs[label, predicted] += number
            texts[place] += number
            right[place] += number * (label == predicted)
        confusion = Confusion.of(
            [pairs[label, predicted] for label in range(len(names)) for predicted in range(len(names))]
        )
        bins = [
            {
                "from": place / _BINS,
                "texts": texts[place],
                "probability": self.sums[place] / texts[place],
                "right": right[place] / texts[place],
            }
            for place in sorted(texts)
        ]
        per_class = zip(
            names, confusion.right, confusion.predictions, confusion.occurrences, f1(confusion), strict=True
        )
        return {
            **measures(confusion),
            "accuracy_interval": list(accuracy_interval(confusion)),
            "log_loss": sum(loss for (code, label), loss in self.losses.items() if label == label_of(code))
            / confusion.rows,
            "calibration_error": sum(each["texts"] * abs(each["probability"] - each["right"]) for each in bins)
            / confusion.rows,
            "calibration": bins,
            "classes": {
                name: {
                    "precision": good / predicted if predicted else None,
                    "recall": good / there if there else None,
                    "f1": mean,
                    "texts": there,
                }
                for name, good, predicted, there, mean in per_class
            },
            "confusion": confusion.plain(names),
        }

    def _labels(self, settings: Settings) -> Callable[[int], int]:
        """Return the function from a code to its label. Raises DataError if it is ambiguous which label is positive."""
        if self.classes:
            return int
        by_code = Counter[int]()
        for (code, *_), number in self.counts.items():
            by_code[code] += number
        first = first_positive_code(by_code, settings)
        return lambda code: int(code >= first)
