"""The vocabulary of an unbounded stream grows, and what it has stays where it is."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from corpus.stream.parts import Part
from corpus.text import FIRST_WORD
from trainer.embeddings.growth import GrowingVocabulary
from trainer.embeddings.sampling import sampling
from trainer.embeddings.text_rows import Vocabulary
from trainer.output.archive import DamagedError

FIRST = Vocabulary(words=("the", "of"), counts=np.array([7, 5]))


def part(words: list[str]) -> Part:
    counts = Counter(words)
    return Part(
        number=0,
        words=tuple(counts),
        counts=np.array(list(counts.values()), np.int64),
        tokens=np.zeros((1, 2), np.int32),
        after={},
    )


texts = st.lists(st.lists(st.sampled_from(["the", "of", *"abcdefg"]), min_size=1, max_size=30), min_size=1, max_size=6)


@given(text=texts, reserve=st.integers(0, 5), min_count=st.integers(1, 6), stop=st.integers(0, 5))
def test_words_that_occur_often_enough_get_rows_and_none_loses_its_own(
    text: list[list[str]], reserve: int, min_count: int, stop: int
) -> None:
    growing = GrowingVocabulary(FIRST, reserve=reserve, min_count=min_count)
    seen: Counter[str] = Counter()
    for number, words in enumerate(text):
        before = growing.now.words
        growing.count(part(words), ("reader-0", number))
        growing.count(part(words), ("reader-0", number))  # a part is counted once
        seen.update(words)
        assert growing.now.words[: len(before)] == before
        assert growing.added <= reserve
        frequent = {word for word, count in seen.items() if count >= min_count} - set(FIRST.words)
        added = set(growing.now.words[2:])
        assert added <= frequent
        assert added == frequent or growing.added == reserve
        if reserve:
            expected = [
                seen[word] + dict(zip(FIRST.words, (7, 5), strict=True)).get(word, 0) for word in growing.now.words
            ]
            assert growing.now.counts.tolist() == expected
        if number == stop:  # a run that is resumed goes on as it would have
            resumed = GrowingVocabulary(FIRST, reserve=reserve, min_count=min_count)
            resumed.restore(growing.state())
            growing = resumed
            assert growing.now.words == (*before, *growing.now.words[len(before) :])


def test_the_user_hears_of_words_for_which_there_was_no_row() -> None:
    growing = GrowingVocabulary(FIRST, reserve=1, min_count=2)
    growing.count(part(["a", "a"]), ("reader-0", 0))
    assert not growing.is_full
    growing.count(part(["b", "b"]), ("reader-0", 1))
    assert growing.is_full
    assert growing.now.words == ("the", "of", "a")


@pytest.mark.parametrize(
    "changes",
    [
        {"added": torch.tensor([255, 254], dtype=torch.uint8)},
        {"added": None},
        {"counts": torch.tensor([1])},
        {"counts": torch.tensor([7, 0])},
        {"other_counts": torch.tensor([1, 2, 3])},
        {"least": None},
    ],
)
def test_a_vocabulary_that_is_none_is_damage(changes: dict[str, object]) -> None:
    growing = GrowingVocabulary(FIRST, reserve=3, min_count=2)
    growing.count(part(["a"]), ("reader-0", 0))
    with pytest.raises(DamagedError):
        GrowingVocabulary(FIRST, reserve=3, min_count=2).restore({**growing.state(), **changes})


def test_rows_in_reserve_are_sampled_nowhere() -> None:
    counts, settings = np.array([9, 4]), {"rows": 3.0, "window": 2, "negatives": 5, "subsample": 0.0}
    plain, more = (sampling(counts, **settings, reserve=reserve) for reserve in (0, 4))
    assert len(more.keep) == len(plain.keep) + 4
    assert not more.keep[FIRST_WORD + 2 :].any()
    assert not more.expected[:, FIRST_WORD + 2 :].any()
    np.testing.assert_array_equal(more.noise, plain.noise)
    np.testing.assert_array_equal(more.keep[: FIRST_WORD + 2], plain.keep)
