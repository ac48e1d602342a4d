"""A model's predictions, counted and compared with the ratings or labels of the same texts.

A text without a word that the model knows has no prediction. It is counted as unknown, and scored neither right nor
wrong.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from corpus.dataset_settings import Settings
from corpus.reading.acceptance import first_positive_code
from corpus.reading.formats import OTHER
from trainer.classification.labelling import Prediction
from trainer.classification.metrics import Confusion


@dataclass(kw_only=True)
class AnswerCounts:
    """How often a model predicted each label, for the texts of each code of a rating or label."""

    classes: tuple[str, ...] = ()
    """The names of more than two classes of the model, by label; their codes are the labels."""
    counts: Counter[tuple[int, int]] = field(default_factory=Counter)
    """By code and predicted label; without the texts that have no prediction."""
    unknown: int = 0
    """Texts without a prediction: they have no word that the model knows."""
    others: int = 0
    """Texts with a prediction, but without a rating or label that is known: they are not scored."""

    def add(self, codes: Sequence[int], predictions: Sequence[Prediction]) -> None:
        labels = {name: label for label, name in enumerate(self.classes)}
        predicted = [labels[each.label] if isinstance(each.label, str) else each.label for each in predictions]
        self.unknown += predicted.count(None)
        pairs = [(code, label) for code, label in zip(codes, predicted, strict=True) if label is not None]
        scored = [pair for pair in pairs if pair[0] != OTHER]
        self.others += len(pairs) - len(scored)
        self.counts.update(scored)

    def labels(self, settings: Settings) -> Callable[[int], int]:
        """The label of a code. Raises DataError where it is not clear which label is positive."""
        if self.classes:
            return int
        by_code = Counter[int]()
        for (code, _), number in self.counts.items():
            by_code[code] += number
        first = first_positive_code(by_code, settings)
        return lambda code: int(code >= first)

    def confusion(self, settings: Settings) -> Confusion:
        """Predictions beside the right labels. Raises DataError where it is not clear which label is positive."""
        label_of, found = self.labels(settings), Counter[tuple[int, int]]()
        for (code, predicted), number in self.counts.items():
            found[label_of(code), predicted] += number
        labels = range(len(self.classes) or 2)
        return Confusion.of([found[label, predicted] for label in labels for predicted in labels])
