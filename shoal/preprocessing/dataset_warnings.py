"""Warnings about a dataset, before and after it is created: only one class, too few rows, or an unusual threshold."""

from math import ceil
from typing import TYPE_CHECKING

from corpus.dataset_settings import DEFAULT, Settings
from corpus.layout import MIN_ROWS, MIN_TRAINING_ROWS

if TYPE_CHECKING:
    from jobs.merge import MergeResult


def dataset_warnings(made: "MergeResult", settings: Settings) -> list[str]:
    """Return warnings about a dataset that was created with these settings. Warnings about the input come first."""
    counts = made.counts
    warnings = [*made.warnings, *(threshold_warnings(settings) if counts["ratings"]["before"] else ())]
    classes = {label: number for label, number in counts["labels"]["after"].items() if number}
    if len(classes) == 1:
        name = (settings.classes or ("negative", "positive"))[int(*classes)]
        warnings.append(f"all texts are {name}, but a model cannot learn from a single class")
    return warnings + too_few_warnings(counts["train"], counts["test"], settings)


def too_few_warnings(train: int, test: int, settings: Settings) -> list[str]:
    if train >= MIN_TRAINING_ROWS and test >= MIN_ROWS:
        return []
    return [
        f"training needs at least {MIN_TRAINING_ROWS} training rows and {MIN_ROWS} test rows, but the dataset has "
        f"{train:,} and {test:,}; {_advice(settings)}"
    ]


def _advice(settings: Settings) -> str:
    if settings.test_input:
        return "add more texts with --input or --test-input"
    if not settings.test_share:
        return "set --test-share, or add --test-input"
    texts = max(ceil(MIN_ROWS / settings.test_share), ceil(MIN_TRAINING_ROWS / (1 - settings.test_share)))
    return f"use at least about {2 * texts:,} distinct texts, a different --test-share, or --test-input"


def threshold_warnings(settings: Settings) -> list[str]:
    """Return a warning if the ratings have an unusual range, but the default threshold divides them into classes.
    Otherwise return an empty list."""
    (low, high), usual = map(settings.in_units, settings.rating_range), DEFAULT
    if high == str(usual.rating_range[1]) or settings.in_units(settings.positive_from) != str(usual.positive_from):
        return []
    return [
        f"ratings range from {low} to {high}, but ratings from {usual.positive_from} count as positive, which is "
        f"the default for ratings up to {usual.rating_range[1]}; set the first positive rating with --positive-from"
    ]
