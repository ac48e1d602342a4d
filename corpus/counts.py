"""What preprocessing counts, and how counts of many tasks become those of the whole.

Counts travel as records of the jobs' output, never as the runner's counters, which a retried task doubles.
While they travel they are flat (`malformed_by_reason.not_json: 3`), so that adding them up is all there is to do.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from corpus.errors import DataError
from corpus.formats import MALFORMED_REASONS
from corpus.settings import Settings


def nested(flat: Mapping[str, int], settings: Settings) -> dict[str, Any]:
    """The counts in the order and shape in which they are published; a reason or rating never seen counts 0.

    Raises DataError when they contradict each other: then records were lost or doubled on the way.
    """
    count = Counter(flat)
    low, high = settings.rating_range
    ratings = range(low, high + 1)
    counts: dict[str, Any] = {
        "lines": count["lines"],
        "malformed": count["malformed"],
        "malformed_by_reason": {reason: count[f"malformed_by_reason.{reason}"] for reason in MALFORMED_REASONS},
        "empty": count["empty"],
        "texts": count["texts"],
        "distinct": count["distinct"],
        "conflicting": count["conflicting"],
        "ratings": {
            "before": {str(rating): count[f"ratings.before.{rating}"] for rating in ratings},
            "after": {str(rating): count[f"ratings.after.{rating}"] for rating in ratings},
        },
    }
    for name in ("wordless", "train", "test", "positive_train", "positive_test", "tokens", "unknown_tokens"):
        counts[name] = count[name]
    _check(counts)
    return counts


def _check(counts: Mapping[str, Any]) -> None:
    sums = {
        "lines": counts["malformed"] + counts["empty"] + counts["texts"],
        "malformed": sum(counts["malformed_by_reason"].values()),
        "texts": sum(counts["ratings"]["before"].values()),
        "distinct": counts["wordless"] + counts["train"] + counts["test"],
    }
    for name, parts in sums.items():
        if counts[name] != parts:
            raise DataError(
                f"the counts contradict each other: {name} is {counts[name]}, but its parts add up to {parts}; "
                "a job's output was lost or doubled, so run the preprocessing again in an empty output folder"
            )
