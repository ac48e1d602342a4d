"""Computes a dataset's counts from the counts of all tasks, and checks them (docs/reference/dataset.md, "Counts").

Jobs exchange counts as records of their output. Do not use the runner's counters for this, because they count a retried
task twice. The counts of a task have flat names (`malformed_by_reason.not_json`), so that the counts of several tasks
can be summed by name.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from common.display import printable
from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.formats import MALFORMED_REASONS
from corpus.reading.tally import other_labels
from corpus.text import load_stopwords

LENGTH_BINS = tuple(1 << power for power in range(14))
"""Bins of the histogram `lengths`.

A bin is named by its smallest number of kept words. The last bin has no upper limit.
"""

_FREQUENT_WORDS = 20
_MAX_CODE = 255


def final_counts(
    flat: Mapping[str, int], *, settings: Settings, positive_from: int, frequent_words: Iterable[tuple[str, int]]
) -> dict[str, Any]:
    """Return the counts of a dataset in the order and form of counts.json. A count that is missing in `flat` becomes 0.

    `flat` has the sums of all tasks' counts, with integer codes instead of ratings and labels. If there are two
    classes, `positive_from` is the smallest code of a positive text. `frequent_words` has all words of the vocabulary
    with their counts, most frequent first. The result lists the most frequent words that are neither English stopwords
    nor punctuation. Raises DataError if the counts contradict each other, because records between the jobs were then
    lost or duplicated.
    """
    count = Counter(flat)
    labels = len(settings.classes)
    codes = {
        when: [count[f"codes.{when}.{code}"] for code in range(labels or _MAX_CODE + 1)] for when in ("before", "after")
    }
    low, high = (1, 0) if settings.labelled else settings.rating_range
    counts: dict[str, Any] = {
        "lines": count["lines"],
        "malformed": count["malformed"],
        "malformed_by_reason": {reason: count[f"malformed_by_reason.{reason}"] for reason in MALFORMED_REASONS},
        "empty": count["empty"],
        "texts": count["texts"],
        "distinct": count["distinct"],
        "conflicting": count["conflicting"],
        "ratings": {
            when: {str(rating): found[rating] for rating in range(low, high + 1)} for when, found in codes.items()
        },
        "labels": {
            when: {
                str(label): number for label, number in enumerate(found if labels else _by_class(found, positive_from))
            }
            for when, found in codes.items()
        },
    }
    if found_labels := other_labels(count):
        counts["other_labels"] = found_labels
    positives = () if labels else ("positive_train", "positive_test")
    for name in ("wordless", "train", "test", *positives, "tokens", "unknown_tokens"):
        counts[name] = count[name]
    counts["lengths"] = {str(least): count[f"lengths.{least}"] for least in LENGTH_BINS}
    counts["cut"] = count["cut"]
    stopwords = load_stopwords()
    informative = (each for each in frequent_words if each[0] not in stopwords and any(map(str.isalnum, each[0])))
    counts["frequent_words"] = [[printable(word), number] for word, number in islice(informative, _FREQUENT_WORDS)]
    _check_sums(counts, labelled=settings.labelled)
    return counts


def _by_class(codes: Sequence[int], positive_from: int) -> tuple[int, int]:
    """Return the number of negative texts and the number of positive texts.

    `codes` has the number of texts with each code.
    """
    return sum(codes[:positive_from]), sum(codes[positive_from:])


def _check_sums(counts: Mapping[str, Any], *, labelled: bool) -> None:
    ratings, labels = counts["ratings"], counts["labels"]
    sums = [
        ("lines", counts["malformed"] + counts["empty"] + counts["texts"]),
        ("malformed", sum(counts["malformed_by_reason"].values())),
        ("texts", sum(labels["before"].values())),
        ("distinct", sum(labels["after"].values())),
        ("distinct", counts["wordless"] + counts["train"] + counts["test"]),
    ]
    if not labelled:
        sums += [("texts", sum(ratings["before"].values())), ("distinct", sum(ratings["after"].values()))]
    for name, parts in sums:
        if counts[name] != parts:
            raise _contradiction(f"{name} is {counts[name]}, but its parts add up to {parts}")
    rows, by_length = counts["train"] + counts["test"], sum(counts["lengths"].values())
    if rows != by_length:
        raise _contradiction(f"train and test have {rows} rows, but the histogram of lengths counts {by_length}")
    if "positive_train" in counts:
        positive, after = counts["positive_train"] + counts["positive_test"], labels["after"]
        least, most = rows - after["0"], after["1"]  # wordless texts have labels, but no rows
        if not least <= positive <= most:
            raise _contradiction(f"{positive} rows are positive, but the other counts allow {least} to {most}")


def _contradiction(what: str) -> DataError:
    return DataError(
        f"the counts contradict each other: {what}; a job's output was lost or doubled, so run the preprocessing "
        "again in an empty output folder"
    )
