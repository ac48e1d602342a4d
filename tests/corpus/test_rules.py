"""Plain functions of the rules are tested against their definitions, and fast functions against plain functions."""

from collections import Counter

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from corpus import rules

DIGESTS = st.binary(min_size=16, max_size=16)
SHARES = st.floats(0, 1, exclude_max=True)


def test_the_mode_wins_and_a_tie_takes_the_smaller_rating() -> None:
    assert rules.modal_rating({1: 1, 5: 2}) == 5
    assert rules.modal_rating({5: 2, 2: 2, 1: 1}) == 2


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 255), st.integers(1, 3)), min_size=1, max_size=5), min_size=1),
    st.randoms(use_true_random=False),
)
def test_modes_of_many_texts_equal_those_of_each_text(texts: list[list[tuple[int, int]]], random) -> None:
    entries = [(number, *entry) for number, found in enumerate(texts) for entry in found]
    numbers, ratings, times = zip(*random.sample(entries, len(entries)), strict=True)
    modes, several = rules.modal_ratings(
        np.array(numbers, np.int64), np.array(ratings, np.uint8), np.array(times, np.uint32)
    )
    counts = [sum((Counter({rating: number}) for rating, number in found), Counter()) for found in texts]
    assert modes.tolist() == list(map(rules.modal_rating, counts))
    assert several.tolist() == [len(each) > 1 for each in counts]


@given(st.lists(DIGESTS, max_size=5), SHARES)
@example([], 0.1)
@example([bytes(16)], 0)
def test_many_texts_are_split_like_single_texts(digests: list[bytes], share: float) -> None:
    edge = int(2**64 * share)
    neighbours = (number for number in range(edge - 2, edge + 3) if 0 <= number < 2**64)
    digests = [*digests, *(number.to_bytes(8, "big") + bytes(8) for number in neighbours)]
    high = np.array([int.from_bytes(each[:8], "big") for each in digests], np.uint64)
    expected = [int.from_bytes(each[:8], "big") < 2**64 * share for each in digests]
    assert rules.in_test_sets(high, share).tolist() == expected
    assert [rules.in_test_set(each, share) for each in digests] == expected


@given(st.lists(st.sampled_from("abcdefgh")), st.integers(1, 10))
def test_the_vocabulary_is_sorted_by_frequency_then_alphabet(words: list[str], size: int) -> None:
    counts = Counter(words)
    chosen = [word for word, count in rules.most_frequent(counts.items(), size) if count == counts[word]]
    ranks = [(-counts[word], word) for word in chosen]
    assert ranks == sorted(ranks)
    assert len(chosen) == min(size, len(counts))
    assert all((-counts[word], word) > ranks[-1] for word in counts if word not in chosen)


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(0, 4)), st.integers(1, 8), st.integers(0, 5))
def test_both_functions_give_the_same_most_frequent_words(counts: dict[str, int], size: int, least: int) -> None:
    words = [word.encode() for word in counts]
    ids = rules.most_frequent_ids(
        np.array(list(counts.values()), np.int64), lambda ids: b" ".join(words[number] for number in ids), size, least
    )
    enough = [(word.encode(), count) for word, count in counts.items() if count >= least]
    assert sorted(words[each] for each in ids) == sorted(word for word, _ in rules.most_frequent(enough, size))
