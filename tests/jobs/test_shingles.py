"""Signatures of texts against their sets of shingles, and pairs of texts in buckets."""

import random
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.dataset_settings import SHINGLE
from jobs import shingles, sketch
from jobs.arrays import pack_arrays
from jobs.shingles import BAND_ROWS, BANDS, PartTexts, jaccard_indices, parts_of, places_of

WORDS = [f"word{number}" for number in range(500)]
HASHES = BANDS * BAND_ROWS


def shingle_set(text: list[str]) -> set[tuple[str, ...]]:
    return {tuple(text[at : at + SHINGLE]) for at in range(max(1, len(text) - SHINGLE + 1))}


def jaccard(one: list[str], other: list[str]) -> float:
    first, second = shingle_set(one), shingle_set(other)
    return len(first & second) / len(first | second)


def part_of(folder: Path, texts: list[list[str]], part: str = "0000") -> PartTexts:
    """The texts of a side file, all of the training set."""
    ids = {word: number for number, word in enumerate(dict.fromkeys(word for text in texts for word in text))}
    side = {
        "lengths": np.array([len(text) for text in texts], np.uint32),
        "text": np.arange(len(texts), dtype=np.uint32),
        "test": np.zeros(len(texts), np.uint8),
        "ids": np.array([ids[word] for text in texts for word in text], np.uint16),
        "words": np.frombuffer(" ".join(ids).encode(), np.uint8),
    }
    (folder / f"part-{part}.bin").write_bytes(b"".join(pack_arrays(side)))
    return PartTexts(str(folder), part)


def changed(text: list[str], words: int, chance: random.Random) -> list[str]:
    """The text with so many words that no other text has."""
    text = list(text)
    for number, place in enumerate(chance.sample(range(len(text)), words)):
        text[place] = f"new{number}of{chance.getrandbits(60)}"
    return text


def signature(texts: PartTexts, number: int) -> np.ndarray:
    minima = np.empty(HASHES, np.uint32)
    start, length = texts._starts[number], texts._lengths[number]
    shingles.fill_minima(texts._ids, start, length, texts._words, shingles._FACTORS, minima)
    return minima


@settings(max_examples=60)
@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=12), min_size=2, max_size=6))
def test_indices_are_those_of_the_sets_also_of_texts_shorter_than_a_shingle(
    tmp_path_factory: pytest.TempPathFactory, texts: list[list[str]]
) -> None:
    found = part_of(tmp_path_factory.mktemp("part"), texts)
    sets = found.sets(found.numbers)
    pairs = list(combinations(range(len(texts)), 2))
    first, second = np.array(pairs).T
    expected = [jaccard(texts[one], texts[other]) for one, other in pairs]
    assert jaccard_indices(sets, first, sets, second).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("words", [1, 3, 8, 16, 30])
def test_equal_minima_estimate_the_index_within_their_standard_error(words: int, tmp_path: Path) -> None:
    chance = random.Random(words)
    estimates = []
    for _ in range(200):
        one = chance.sample(WORDS, 60)
        other = changed(one, words, chance)
        found = part_of(tmp_path, [one, other])
        estimate = np.mean(signature(found, 0) == signature(found, 1))
        index = jaccard(one, other)
        estimates.append((estimate - index) / np.sqrt(index * (1 - index) / HASHES))
    assert abs(np.mean(estimates)) < 4 / np.sqrt(len(estimates))
    assert 0.8 < np.std(estimates) < 1.2


@pytest.mark.parametrize("words", [3, 8, 12])
def test_texts_share_a_band_with_the_probability_of_their_index(words: int, tmp_path: Path) -> None:
    chance = random.Random(words)
    originals = [chance.sample(WORDS, 60) for _ in range(600)]
    copies = [changed(text, words, chance) for text in originals]
    first, second = part_of(tmp_path, originals).bands(), part_of(tmp_path, copies).bands()
    indices = np.array([jaccard(one, other) for one, other in zip(originals, copies, strict=True)])
    likely = 1 - (1 - indices**BAND_ROWS) ** BANDS
    found = (first == second).any(axis=0)
    assert abs(found.sum() - likely.sum()) < 4 * np.sqrt((likely * (1 - likely)).sum()) + 1


def test_a_text_has_a_number_in_its_part(tmp_path: Path) -> None:
    found = part_of(tmp_path, [["a"], ["b"], ["c"]], "00ff")
    assert parts_of(found.numbers).tolist() == [255] * 3
    assert places_of(found.numbers).tolist() == [0, 1, 2]
    assert set((found.numbers & (shingles.IN_TRAINING | shingles.IN_TEST)).tolist()) == {1}


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60))
def test_texts_of_a_small_bucket_are_all_paired(buckets: list[int]) -> None:
    numbers = np.arange(len(buckets), dtype=np.uint64) * np.uint64(4)
    first, second, left_out = sketch.paired(np.array(buckets, np.uint64), numbers)
    small = [bucket for bucket in range(6) if buckets.count(bucket) <= 2 * sketch.REACH + 1]
    expected = {
        (4 * one, 4 * other)
        for one, other in combinations(range(len(buckets)), 2)
        if buckets[one] == buckets[other] and buckets[one] in small
    }
    found = list(zip(first.tolist(), second.tolist(), strict=True))
    assert expected <= set(found)
    assert len(set(found)) == len(found)
    of_all = sum(buckets.count(bucket) * (buckets.count(bucket) - 1) // 2 for bucket in range(6))
    assert len(found) + left_out == of_all


def test_of_a_large_bucket_each_text_has_some_pairs_and_the_others_are_counted() -> None:
    count = 1_000
    numbers = np.arange(count, dtype=np.uint64)
    first, second, left_out = sketch.paired(np.zeros(count, np.uint64), numbers)
    assert len(first) == count * sketch.REACH
    assert left_out == count * (count - 1) // 2 - count * sketch.REACH
    assert (first < second).all()
    assert (np.bincount(np.concatenate((first, second)).astype(np.int64)) == 2 * sketch.REACH).all()
