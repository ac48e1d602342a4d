"""A model's answers, counted and compared with what the files have for the same texts.

The easy mistake is to score what was not answered: a text without a known word is neither right nor wrong.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from corpus.settings import Settings
from jobs.choose import first_positive_code
from trainer.classification.labelling import Prediction
from trainer.classification.metrics import Confusion


@dataclass(kw_only=True)
class Answers:
    """How often a model gave which answer to texts of each code of a rating or label."""

    counts: Counter[tuple[int, int]] = field(default_factory=Counter)
    """By code and label; texts without an answer are not among them."""
    unknown: int = 0
    """Texts without an answer: none of their words counts."""

    def add(self, codes: Sequence[int], said: Sequence[Prediction]) -> None:
        """Count the answers to texts of these codes."""
        self.unknown += sum(each.label is None for each in said)
        self.counts.update((code, each.label) for code, each in zip(codes, said, strict=True) if each.label is not None)

    def confusion(self, settings: Settings) -> Confusion:
        """Answers beside what is right. Raises FinalError where the labels do not say which of them is positive."""
        by_code = Counter[int]()
        for (code, _), number in self.counts.items():
            by_code[code] += number
        first = first_positive_code(by_code, settings)
        found = Counter[tuple[bool, int]]()
        for (code, label), number in self.counts.items():
            found[code >= first, label] += number
        return Confusion(
            true_positive=found[True, 1],
            false_positive=found[False, 1],
            false_negative=found[True, 0],
            true_negative=found[False, 0],
        )
