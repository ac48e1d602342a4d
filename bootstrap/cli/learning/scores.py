"""The scores of a classifier, for all commands that show some."""

from collections.abc import Mapping, Sequence
from typing import Any

from bootstrap.cli.output import Rows, filled_rows
from common.display import plural

SCORES: Rows = {
    "accuracy": "{accuracy:.1%} (always the majority: {majority:.1%})",
    "balanced accuracy": "{balanced_accuracy:.1%}",
    "macro-F1": "{macro_f1:.3f}",
    "F1 positive, negative": "{f1_positive:.3f}, {f1_negative:.3f}",
    "log loss": "{log_loss:.3f}",
    "calibration error": "{calibration_error:.1%}",
}
_MOST_CLASSES, _MOST_LETTERS = 5, 10
"""A confusion matrix of more classes is not shown, and longer names of classes are cut, to fit 80 columns."""


def confusion_rows(matrix: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Rows of a table, from `Confusion.plain`; none where there are many classes."""
    if len(matrix["classes"]) > _MOST_CLASSES:
        return []
    names = [_cut(name) for name in matrix["classes"]]
    widths = [
        max(len(name), *(len(f"{number:,}") for number in column))
        for name, column in zip(names, zip(*matrix["counts"], strict=True), strict=True)
    ]

    def aligned(cells: Sequence[str]) -> str:
        return "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))

    lines = [
        (f"  {name}", aligned([f"{number:,}" for number in counts]))
        for name, counts in zip(names, matrix["counts"], strict=True)
    ]
    return [("predicted as", aligned(names)), *lines]


def score_rows(
    texts: int, scores: Mapping[str, Any], matrix: Mapping[str, Any], **left_out: int
) -> list[tuple[str, str]]:
    """Rows of a table: the number of scored texts, those `left_out` by reason, the scores, and the confusion matrix."""
    reasons = {"unknown": "without a word that the model knows", "other_labels": "without a known rating or label"}
    out = ", ".join(f"{number:,} {reasons.get(name, name)}" for name, number in left_out.items() if number)
    scored = plural(texts, "text") + (f"; left out: {out}" if out else "")
    return [("scored", scored), *filled_rows(SCORES, scores), *confusion_rows(matrix)]


def _cut(name: str) -> str:
    return name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 2]}.."
