"""The confusion matrix of a classifier for a person: a line for each class, with the rows by their predicted class."""

from collections.abc import Mapping, Sequence
from typing import Any

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


def _cut(name: str) -> str:
    return name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 2]}.."
