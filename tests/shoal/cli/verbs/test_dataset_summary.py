"""Summary of a new dataset: figures, bars and warnings."""

from typing import Any

import pytest

from corpus.dataset_settings import Settings
from shoal.cli.dataset_summary import bar, count_figures, histogram
from shoal.preprocessing.dataset_warnings import dataset_warnings, threshold_warnings

COUNTS: dict[str, Any] = {
    "ratings": {"before": {"1": 10, "5": 30}, "after": {"1": 5, "5": 20}},
    "labels": {"before": {"0": 10, "1": 30}, "after": {"0": 5, "1": 20}},
    "lengths": {"1": 0, "2": 3, "4": 0, "8": 22, "16": 0, "32": 0},
    "frequent_words": [["lamp", 9], ["fine", 8]],
    "train": 9,
    "test": 3,
}


def test_a_chosen_threshold_gives_no_warning() -> None:
    assert threshold_warnings(Settings()) == []
    assert threshold_warnings(Settings(rating_range=(0, 5))) == []
    assert threshold_warnings(Settings(rating_range=(1, 10), positive_from=7)) == []
    assert threshold_warnings(Settings(rating_range=(1, 10))) != []


def test_only_the_most_frequent_of_many_classes_are_shown() -> None:
    texts = {str(label): label for label in range(100)}
    classes = [f"c{label}" for label in range(100)]
    summary = count_figures({**COUNTS, "labels": {"before": texts, "after": texts}}, classes)
    shown = [line.split()[:3] for line in summary.splitlines() if line.startswith("  c")]
    assert (len(shown), shown[0]) == (20, ["c99", "99", "2.0%"])


def test_a_dataset_of_only_stopwords_shows_no_frequent_words() -> None:
    assert "most frequent words: lamp, fine" in count_figures(COUNTS)
    assert "frequent" not in count_figures({**COUNTS, "frequent_words": []})


@pytest.mark.parametrize(
    "counts",
    [
        {"labels": {"before": {"0": 0, "1": 9}, "after": {"0": 0, "1": 9}}},
        {"labels": {"before": {"0": 9, "1": 0}, "after": {"0": 9, "1": 0}}},
        {"test": 1},
        {"train": 2},
    ],
    ids=["positive", "negative", "test", "train"],
)
def test_a_dataset_without_contrast_gives_a_warning(counts, messages) -> None:
    from jobs.merge import MergeResult

    def warnings(**changes: Any) -> list[str]:
        return dataset_warnings(
            MergeResult(dataset="x", digest="y", counts={**COUNTS, **changes}, malformed=[]), Settings()
        )

    assert warnings() == []
    (warning,) = warnings(**counts)
    messages.check(warning)


def test_a_share_above_zero_is_visible_in_a_bar() -> None:
    assert [bar(share, 20) for share in (0, 1e-9, 1)] == ["", "#", "#" * 20]
    assert histogram("x", {"": {"a": 0, "b": 0}}).count("0.0%") == 2
