"""The vocabulary has exactly the most frequent words, for any number of buckets. Bad input is refused."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.tally import Tally
from corpus.rules import most_frequent
from jobs.choose import VocabularyChoice, choose_vocabulary, read_vocabulary_choice, write_choice
from jobs.records import Arrays
from jobs.words import FrequentWords, WordCounts
from tests.jobs.piles import plan_in

WORDS = st.text("abc", min_size=1, max_size=4)
BLOCKS = st.lists(st.tuples(st.integers(0, 3), st.dictionaries(WORDS, st.integers(1, 5), min_size=1)), max_size=8)


def block(counts: dict[str, int]) -> Arrays:
    words, numbers = np.frombuffer(" ".join(counts).encode(), np.uint8), np.array(list(counts.values()), np.uint32)
    return {"words": words, "counts": numbers}


@settings(max_examples=50)
@given(BLOCKS, st.integers(1, 12))
def test_a_reducer_keeps_the_most_frequent_words_of_all_its_buckets(blocks, size) -> None:
    kept = WordCounts(size)
    total: Counter[bytes] = Counter()
    for bucket in range(4):
        found = [
            {word + "wxyz"[bucket]: count for word, count in counts.items()} for of, counts in blocks if of == bucket
        ]
        for counts in found:
            total.update({word.encode(): count for word, count in counts.items()})
        kept.add(map(block, found))
    assert most_frequent(kept.candidates, size) == sorted(total.items(), key=lambda item: (-item[1], item[0]))[:size]


FREQUENT = {"lamp": 5, "bulb": 3, "a": 3, "strap": 3, "z": 1}


def chosen(
    folder: Path, *, lines: int = 20, malformed: int = 0, limit: float = 0.05, size: int = 10
) -> VocabularyChoice:
    tally = Tally()
    tally.counts.update(lines=lines - malformed, texts=lines - malformed)
    for number in range(malformed):
        tally.count_malformed("not_json", "reviews.json", 0, number + 1, b"{")
    candidates = FrequentWords(size)
    candidates.add([word.encode() for word in FREQUENT], np.array([*FREQUENT.values()]))
    plan = plan_in(folder, settings=Settings(vocabulary_size=size), max_malformed=limit)
    return choose_vocabulary(candidates, plan, tally)


# For the last two, the product of the share and the lines is not exactly the number of lines.
@pytest.mark.parametrize(("malformed", "lines"), [(1, 20), (0, 20), (29, 100), (57, 100)])
def test_one_malformed_line_more_than_is_allowed_ends_the_work(tmp_path, malformed, lines, messages) -> None:
    limit = malformed / lines
    chosen(tmp_path, lines=lines, malformed=malformed, limit=limit)
    with messages.raises(DataError):
        chosen(tmp_path, lines=lines, malformed=malformed + 1, limit=limit)


def test_input_without_words_is_refused(tmp_path: Path, messages) -> None:
    tally = Tally()
    tally.counts.update(lines=2)
    for texts in (0, 2):
        tally.counts.update(texts=texts)
        with messages.raises(DataError):
            choose_vocabulary(FrequentWords(1), plan_in(tmp_path), tally)


@pytest.mark.parametrize("size", range(1, 7))
def test_ties_at_the_end_of_the_vocabulary_are_in_alphabetical_order(tmp_path: Path, size: int) -> None:
    expected = [("lamp", 5), ("a", 3), ("bulb", 3), ("strap", 3), ("z", 1)][:size]
    choice = chosen(tmp_path, size=size)
    assert list(zip(choice.words, choice.counts, strict=True)) == expected
    write_choice(choice, str(tmp_path / "choice.json"))
    assert read_vocabulary_choice(str(tmp_path / "choice.json")) == choice
