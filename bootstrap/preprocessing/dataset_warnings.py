"""Warnings about a dataset, before and after it is made: one class alone, too few rows, an odd threshold."""

from math import ceil
from typing import TYPE_CHECKING

from corpus.dataset_settings import DEFAULT, Settings
from corpus.layout import MIN_ROWS, MIN_TRAINING_ROWS

if TYPE_CHECKING:
    from jobs.merge import MergeResult


def dataset_warnings(made: "MergeResult", settings: Settings) -> list[str]:
    """What a person should know of a dataset that was made with these settings; warnings of the input come first."""
    counts = made.counts
    found = [*made.warnings, *(threshold_warnings(settings) if counts["ratings"]["before"] else ())]
    classes = {label: number for label, number in counts["labels"]["after"].items() if number}
    if len(classes) == 1:
        name = (settings.classes or ("negative", "positive"))[int(*classes)]
        found.append(f"all texts are {name}: a model can learn nothing from one class")
    return found + too_few_warnings(counts["train"], counts["test"], settings)


def too_few_warnings(train: int, test: int, settings: Settings) -> list[str]:
    if train >= MIN_TRAINING_ROWS and test >= MIN_ROWS:
        return []
    return [
        f"training needs at least {MIN_TRAINING_ROWS} rows to learn from and {MIN_ROWS} to test, and has "
        f"{train:,} and {test:,}; {_advice(settings)}"
    ]


def _advice(settings: Settings) -> str:
    """What gives training enough rows."""
    if settings.test_input:
        return "give more texts by --input or --test-input"
    if not settings.test_share:
        return "give a --test-share, or --test-input"
    texts = max(ceil(MIN_ROWS / settings.test_share), ceil(MIN_TRAINING_ROWS / (1 - settings.test_share)))
    return f"give about {2 * texts:,} distinct texts or more, another --test-share, or --test-input"


def threshold_warnings(settings: Settings) -> list[str]:
    """A warning where ratings have an unusual range, but the usual threshold divides them into classes."""
    (low, high), usual = map(settings.in_units, settings.rating_range), DEFAULT
    if high == str(usual.rating_range[1]) or settings.in_units(settings.positive_from) != str(usual.positive_from):
        return []
    return [
        f"ratings go from {low} to {high}, but count as positive from {usual.positive_from}, as ratings up to "
        f"{usual.rating_range[1]} do; set the first positive rating by --positive-from"
    ]
