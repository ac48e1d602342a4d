"""Totals, histograms and frequent words of a dataset, for `shoal preprocess` and `shoal dataset info`.

Bars are ASCII, because a terminal or a log file may lack other characters.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from common.display import join_lines, length_bins
from shoal.cli.figures import percent
from shoal.cli.output import Rows, table
from trainer.classification.metrics import TWO_CLASSES

_BAR_LETTERS = 30
"""Total width of the bars in a line, so that the line fits into 80 columns."""
_WORDS_SHOWN = 20
_CLASSES_SHOWN = 20


def count_figures(counts: Mapping[str, Any], classes: Sequence[str] = TWO_CLASSES) -> str:
    """Return histograms of ratings, classes and text lengths, and the most frequent words, from counts.json.

    If there are many classes, only the most frequent classes are shown.
    """
    before, after = counts["labels"]["before"], counts["labels"]["after"]
    codes = {name: str(label) for label, name in enumerate(classes)}
    if len(codes) > _CLASSES_SHOWN:
        codes = dict(sorted(codes.items(), key=lambda item: -after[item[1]]))
    parts = []
    if counts["ratings"]["before"]:
        parts.append(
            histogram("rating", {"all texts": counts["ratings"]["before"], "distinct": counts["ratings"]["after"]})
        )
    parts.append(
        histogram(
            "class",
            {
                "all texts": {name: before[code] for name, code in codes.items()},
                "distinct": {name: after[code] for name, code in codes.items()},
            },
            shown=_CLASSES_SHOWN,
        )
    )
    if lengths := length_bins(counts["lengths"]):
        parts.append(histogram("words per text", {"distinct": lengths}))
    if words := ", ".join(word for word, _ in counts["frequent_words"][:_WORDS_SHOWN]):
        parts.append(f"most frequent words: {words}")
    return "\n\n".join(parts)


def malformed_text(counts: Mapping[str, Any]) -> str:
    """Return the number of malformed records as text, in total and by reason."""
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in counts["malformed_by_reason"].items() if number)
    return f"{counts['malformed']:,}" + (f" ({reasons})" if reasons else "")


def settings_text(settings: Mapping[str, Any]) -> str:
    """Return the settings of a dataset as text, without lists of labels, because they can be long."""
    shown = {name: value for name, value in settings.items() if name not in ("classes", "negative_labels")}
    return "settings: " + ", ".join(
        f"{name} {value if isinstance(value, str) else json.dumps(value)}" for name, value in shown.items()
    )


def malformed_places(content: Mapping[str, Any]) -> str:
    """Return one line of text for each of the first malformed lines: reason, file, line number and beginning."""
    places = content["malformed_lines"]
    return join_lines(f"{each['reason']}: {each['file']}, line {each['line']}: {each['begins']}" for each in places)


TOTALS: Rows = {
    "dataset": "{dataset}",
    "lines": "{lines:,}",
    "malformed": malformed_text,
    "empty": "{empty:,}",
    "distinct texts": "{distinct:,}, {conflicting:,} of them with conflicting duplicates",
    "without words": "{wordless:,}",
    "rows": "{train:,} to train, {test:,} to test",
    "truncated": "{cut:,}",
    "unknown words": lambda counts: percent(counts["unknown_tokens"] / counts["tokens"]),
}
"""Totals that `shoal preprocess` prints, from counts.json and the address of the dataset."""


def bar(share: float, letters: int) -> str:
    """Return a bar of at most `letters` characters for a share from 0 to 1. Only the share 0 has an empty bar."""
    return "#" * (max(1, round(share * letters)) if share else 0)


def histogram(title: str, columns: Mapping[str, Mapping[str, int]], shown: int | None = None) -> str:
    """Return a table with one row per entry; each column shows the entry's count, share and bar.

    `columns` maps each column's name (can be empty) to the count of each entry. All columns have the same entries.
    `shown`: the number of entries to show, starting with the first (default: all).
    """
    letters = _BAR_LETTERS // len(columns)
    lines = []
    for entry in list(next(iter(columns.values())))[:shown]:
        line = [f"  {entry}"]
        for counts in columns.values():
            number, total, most = counts[entry], sum(counts.values()), max(counts.values())
            share = f"{number / total if total else 0:.1%}"
            line += [f"{number:,}", share, bar(number / most if most else 0, letters)]
        lines.append(line)
    heads = [title, *(head for name in columns for head in (name, "", ""))]
    numbers = [3 * column + number for column in range(len(columns)) for number in (1, 2)]
    return table(lines, heads, right=numbers)
