"""The flat counts of tasks become the published counts; contradictions show that some were lost or doubled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from corpus.counts import LENGTH_BINS, final_counts
from corpus.dataset_settings import Settings

SETTINGS = Settings(row_length=4)
WORDS = [("good", 9), ("lamp", 7)]
# 12 lines: 2 malformed, 1 empty, 9 texts, of which 7 are distinct: 1 wordless, 5 to train, 1 to test.
FLAT_TEXT = """
lines=12 malformed=2 malformed_by_reason.not_json=2 empty=1 texts=9 codes.before.1=4 codes.before.5=5 codes.after.1=3
codes.after.5=4 distinct=7 conflicting=1 wordless=1 train=5 test=1 positive_train=3 positive_test=1 lengths.1=2
lengths.2=2 lengths.4=1 lengths.8=1 cut=2 tokens=14 unknown_tokens=3
"""
FLAT = {name: int(number) for name, number in (pair.split("=") for pair in FLAT_TEXT.split())}


def counts(settings: Settings = SETTINGS, positive_from: int = 4, **changed: int) -> dict:
    flat = {**FLAT, **{name.replace("__", "."): number for name, number in changed.items()}}
    return final_counts(flat, settings=settings, positive_from=positive_from, frequent_words=WORDS)


def test_counts_are_published_in_one_order_with_zeros() -> None:
    found = counts()
    assert list(found)[:5] == ["lines", "malformed", "malformed_by_reason", "damaged_files", "empty"]
    assert list(found)[5:8] == ["texts", "distinct", "conflicting"]
    assert found["malformed_by_reason"]["bad_rating"] == 0
    assert found["ratings"] == {
        "before": {"1": 4, "2": 0, "3": 0, "4": 0, "5": 5},
        "after": {"1": 3, "2": 0, "3": 0, "4": 0, "5": 4},
    }
    assert found["labels"] == {"before": {"0": 4, "1": 5}, "after": {"0": 3, "1": 4}}
    assert list(found["lengths"]) == [str(least) for least in LENGTH_BINS]
    assert found["lengths"]["8"] == 1
    assert found["cut"] == 2
    assert found["frequent_words"] == [["good", 9], ["lamp", 7]]


def test_labels_have_no_ratings() -> None:
    codes = {"codes.before.3": 4, "codes.before.4": 5, "codes.after.3": 3, "codes.after.4": 4}  # neg and pos
    flat = {**{name: n for name, n in FLAT.items() if not name.startswith("codes")}, **codes}
    chosen = Settings(row_length=4, labelled=True)
    found = final_counts(flat, settings=chosen, positive_from=4, frequent_words=WORDS)
    assert found["ratings"] == {"before": {}, "after": {}}
    assert found["labels"] == {"before": {"0": 4, "1": 5}, "after": {"0": 3, "1": 4}}


def test_twenty_frequent_words_are_published() -> None:
    words = [(f"w{number}", 100 - number) for number in range(30)]
    found = final_counts(FLAT, settings=SETTINGS, positive_from=4, frequent_words=words)
    assert found["frequent_words"] == [[word, number] for word, number in words[:20]]


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({"lines": 13}, "lines is 13, .* 12"),
        ({"malformed_by_reason__bad_rating": 1}, "malformed is 2, .* 3"),
        ({"codes__before__1": 5}, "texts is 9, .* 10"),
        ({"codes__after__1": 2}, "distinct is 7, .* 6"),
        ({"codes__before__1": 3, "codes__before__9": 1}, "texts is 9, .* 8"),
        ({"wordless": 2}, "distinct is 7, .* 8"),
        ({"lengths__16": 1}, "train and test are 6 rows, .* 7"),
        ({"conflicting": 3}, "conflicting is 3, .* 0 to 2"),
        ({"positive_train": 6}, "positive_train is 6, .* 0 to 5"),
        ({"positive_test": 2}, "positive_test is 2, .* 0 to 1"),
        ({"positive_train": 4}, r"positive_train \+ positive_test is 5, .* 3 to 4"),
        ({"positive_train": 1}, r"positive_train \+ positive_test is 2, .* 3 to 4"),
        ({"cut": 0}, "cut is 0, .* 1 to 2"),
        ({"cut": 3}, "cut is 3, .* 1 to 2"),
        ({"tokens": 11}, "tokens is 11, .* 12 to 24"),
        ({"tokens": 25}, "tokens is 25, .* 12 to 24"),
        ({"unknown_tokens": 15}, "unknown_tokens is 15, .* 0 to 14"),
    ],
)
def test_counts_that_contradict_each_other_are_refused(changed: dict[str, int], wrong: str) -> None:
    with pytest.raises(DataError, match=wrong):
        counts(**changed)


@given(st.sampled_from([name for name in FLAT if name.startswith(("lines", "texts", "distinct", "train", "codes"))]))
def test_no_sum_can_be_doubled_unnoticed(name: str) -> None:
    with pytest.raises(DataError, match="the counts contradict each other"):
        final_counts({**FLAT, name: 2 * FLAT[name]}, settings=SETTINGS, positive_from=4, frequent_words=WORDS)


@given(st.lists(st.integers(1, 20_000), min_size=1, max_size=30), st.integers(1, 10_000))
def test_counts_of_real_rows_are_never_refused(kept_words: list[int], row_length: int) -> None:
    bins = [max(least for least in LENGTH_BINS if least <= number) for number in kept_words]
    rows = len(kept_words)
    found = final_counts(
        {
            **dict.fromkeys(("lines", "texts", "distinct", "train", "codes.before.5", "codes.after.5"), rows),
            "positive_train": rows,
            **{f"lengths.{least}": bins.count(least) for least in bins},
            "cut": sum(number > row_length for number in kept_words),
            "tokens": sum(min(number, row_length) for number in kept_words),
        },
        settings=Settings(row_length=row_length),
        positive_from=4,
        frequent_words=[],
    )
    assert sum(found["lengths"].values()) == rows
