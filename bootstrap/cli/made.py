"""What a person looks at when a dataset was made, or opened: totals, histograms, words, and what should worry them.

The easy mistake is to show a dataset that teaches nothing as if all were well: one class alone is a warning.
"""

from collections.abc import Mapping
from math import ceil
from typing import TYPE_CHECKING, Any

from bootstrap.cli.figures import histogram
from bootstrap.cli.output import percent, table
from corpus.display import plural
from corpus.layout import LEAST_ROWS, LEAST_TRAINING_ROWS
from corpus.settings import Settings

if TYPE_CHECKING:
    from jobs.merge import MergeResult

_WORDS_SHOWN = 20


def warnings(made: "MergeResult", settings: Settings) -> list[str]:
    """What a person should know of a dataset that was made by these settings: of the input first."""
    counts = made.counts
    noticed = [*made.warnings, *(threshold(settings) if counts["ratings"]["before"] else ())]
    classes = {label: number for label, number in counts["labels"]["after"].items() if number}
    if len(classes) == 1:
        name = "positive" if "1" in classes else "negative"
        noticed.append(f"all texts are {name}: a model can learn nothing from one class")
    noticed += too_few(counts["train"], counts["test"], settings)
    noticed += [
        f"{damage['file']} is damaged: {plural(damage['lines'], 'line')} of it, {damage['bytes']:,} bytes, "
        "could be read; what else it held is lost"
        for damage in made.damaged
    ]
    return noticed


def too_few(train: int, test: int, settings: Settings) -> list[str]:
    """A warning where there are fewer rows than training needs."""
    if train >= LEAST_TRAINING_ROWS and test >= LEAST_ROWS:
        return []
    return [
        f"training needs at least {LEAST_TRAINING_ROWS} rows to learn from and {LEAST_ROWS} to test, and has "
        f"{train:,} and {test:,}; {_more(settings)}"
    ]


def _more(settings: Settings) -> str:
    """What makes the rows enough."""
    if settings.test_input:
        return "give more texts by --input or --test-input"
    if not settings.test_share:
        return "give a --test-share, or --test-input"
    texts = max(ceil(LEAST_ROWS / settings.test_share), ceil(LEAST_TRAINING_ROWS / (1 - settings.test_share)))
    return f"give about {2 * texts:,} distinct texts or more, another --test-share, or --test-input"


def threshold(settings: Settings) -> list[str]:
    """A warning where ratings of another range are told apart as those of the usual one are."""
    (low, high), usual = map(settings.in_units, settings.rating_range), Settings()
    if high == str(usual.rating_range[1]) or settings.in_units(settings.positive_from) != str(usual.positive_from):
        return []
    return [
        f"ratings go from {low} to {high}, but count as positive from {usual.positive_from} as those up to "
        f"{usual.rating_range[1]} do; say by --positive-from where positive begins"
    ]


def result(made: "MergeResult") -> str:
    """All that a person looks at after a run."""
    return f"{_totals(made)}\n\n{figures(made.counts)}"


def figures(counts: Mapping[str, Any]) -> str:
    """Ratings, classes, lengths and words of a dataset by its published counts."""
    before, after = counts["labels"]["before"], counts["labels"]["after"]
    named = {"negative": "0", "positive": "1"}
    parts = []
    if counts["ratings"]["before"]:
        parts.append(
            histogram("rating", {"all texts": counts["ratings"]["before"], "distinct": counts["ratings"]["after"]})
        )
    parts.append(
        histogram(
            "class",
            {
                "all texts": {name: before[label] for name, label in named.items()},
                "distinct": {name: after[label] for name, label in named.items()},
            },
        )
    )
    if lengths := _trimmed(counts["lengths"]):
        parts.append(histogram("words kept of a text", {"distinct": lengths}))
    words = ", ".join(word for word, _ in counts["frequent_words"][:_WORDS_SHOWN])
    parts.append(f"most frequent words: {words}")
    return "\n\n".join(parts)


def _totals(made: "MergeResult") -> str:
    counts = made.counts
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in counts["malformed_by_reason"].items() if number)
    rows = [
        ("dataset", made.dataset),
        ("lines", f"{counts['lines']:,}"),
        ("malformed", f"{counts['malformed']:,}" + (f" ({reasons})" if reasons else "")),
        *(
            ("", f"{place['reason']}: {place['file']}, line {place['line']}: {place['begins']}")
            for place in made.malformed
        ),
        ("empty", f"{counts['empty']:,}"),
        ("distinct texts", f"{counts['distinct']:,} ({counts['conflicting']:,} of them with duplicates that disagree)"),
        ("without a kept word", f"{counts['wordless']:,}"),
        ("rows", f"{counts['train']:,} to train, {counts['test']:,} to test; {counts['cut']:,} cut at the row length"),
        ("unknown words", percent(counts["unknown_tokens"] / counts["tokens"])),
    ]
    return table(rows)


def _trimmed(lengths: dict[str, int]) -> dict[str, int]:
    """The bins of a histogram of lengths that hold texts, and those between, named by both of their ends."""
    least = list(lengths)
    held = [number for number, each in enumerate(least) if lengths[each]]
    if not held:
        return {}

    def name(number: int) -> str:
        low = int(least[number])
        if number + 1 == len(least):
            return f"{low} and more"
        high = int(least[number + 1]) - 1
        return f"{low}" if low == high else f"{low} to {high}"

    return {name(number): lengths[least[number]] for number in range(held[0], held[-1] + 1)}
