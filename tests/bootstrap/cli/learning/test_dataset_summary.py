"""Summary of a new dataset: figures, bars and warnings."""

from bootstrap.cli.figures import duration, size
from bootstrap.cli.learning.dataset_summary import bar, count_figures, histogram
from bootstrap.preprocessing.dataset_warnings import dataset_warnings, threshold_warnings
from corpus.dataset_settings import Settings
from jobs.merge import MergeResult


def test_a_chosen_threshold_gives_no_warning() -> None:
    assert threshold_warnings(Settings()) == []
    assert threshold_warnings(Settings(rating_range=(0, 5))) == []
    assert threshold_warnings(Settings(rating_range=(1, 10), positive_from=7)) == []
    assert threshold_warnings(Settings(rating_range=(1, 10))) != []


COUNTS = {
    "ratings": {"before": {"1": 10, "5": 30}, "after": {"1": 5, "5": 20}},
    "labels": {"before": {"0": 10, "1": 30}, "after": {"0": 5, "1": 20}},
    "lengths": {"1": 0, "2": 3, "4": 0, "8": 22, "16": 0, "32": 0},
    "frequent_words": [["lamp", 9], ["fine", 8]],
    "train": 9,
    "test": 3,
}


def merged(malformed: list[dict[str, object]] | None = None, **counts: object) -> MergeResult:
    return MergeResult(dataset="x", digest="y", counts={**COUNTS, **counts}, malformed=malformed or [])


def test_only_the_most_frequent_of_many_classes_are_shown() -> None:
    texts = {str(label): label for label in range(100)}
    classes = [f"c{label}" for label in range(100)]
    summary = count_figures({**COUNTS, "labels": {"before": texts, "after": texts}}, classes)
    shown = [line.split()[:3] for line in summary.splitlines() if line.startswith("  c")]
    assert (len(shown), shown[0]) == (20, ["c99", "99", "2.0%"])


def test_a_dataset_of_only_stopwords_shows_no_frequent_words() -> None:
    assert "most frequent words: lamp, fine" in count_figures(COUNTS)
    assert "frequent" not in count_figures({**COUNTS, "frequent_words": []})


def test_a_dataset_without_contrast_gives_a_warning() -> None:
    def warned(**counts: object) -> str:
        return "\n".join(dataset_warnings(merged(**counts), Settings()))  # type: ignore[arg-type]

    assert warned() == ""
    assert "all texts are positive" in warned(labels={"before": {"0": 0, "1": 9}, "after": {"0": 0, "1": 9}})
    assert "all texts are negative" in warned(labels={"before": {"0": 9, "1": 0}, "after": {"0": 9, "1": 0}})
    few = warned(test=1)
    assert "training needs at least 3 training rows and 2 test rows, but the dataset has 9 and 1; use at least" in few
    assert "has 2 and 3;" in warned(train=2)


def test_estimated_figures_are_rounded() -> None:
    assert [size(each) for each in (0, 999, 1_500, 234_567, 92.45e9, 5e12)] == [
        *("0 bytes", "999 bytes", "1.5 kB", "235 kB", "92.5 GB", "5.0 TB"),
    ]
    assert [duration(each) for each in (0.3, 1.2, 8.4, 600, 7_200)] == [
        *("less than a second", "1 second", "8 seconds", "10 minutes", "2.0 hours"),
    ]


def test_a_share_above_zero_is_visible_in_a_bar() -> None:
    assert [bar(share, 20) for share in (0, 1e-9, 1)] == ["", "#", "#" * 20]
    assert histogram("x", {"": {"a": 0, "b": 0}}).count("0.0%") == 2
