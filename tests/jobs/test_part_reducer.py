"""A mapper's collector and a reducer's part make the same distinct texts for every split and order."""

from collections import Counter
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.dataset_settings import Settings
from corpus.text import words
from jobs import collector
from jobs.arrays import pack_arrays, unpack_arrays
from jobs.collector import Collector
from jobs.part_reducer import PartReducer

STOPWORDS = ["the"]
COPIES = ("text", "code", "test", "times")
WORDS = st.sampled_from(["the", "a", "lamp", "don't", "incomprehensibilities", "!"])
REVIEWS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["the", "a", "lamp", "don't", "incomprehensibilities", "!"]), max_size=4).map(
            " ".join
        ),
        st.integers(1, 5),
        st.booleans(),
    ),
    min_size=1,
    max_size=30,
)


def united(tasks: list[list[tuple[str, int, bool]]], chosen: Settings, order=lambda values: values) -> PartReducer:
    values = []
    for task in tasks:
        collected = Collector(STOPWORDS, 1)
        for text, code, test in task:
            collected.add([text], [code], test)
            if len(text) % 3 == 0:
                values += [block for name, block in collected.blocks() if name == b"0000"]
        values += [block for name, block in collected.blocks() if name == b"0000"]
    part = PartReducer(chosen)
    for value in order(values):
        part.add(value)
    return part if values else None


def expected(reviews: list[tuple[str, int, bool]]) -> dict[bytes, tuple[list[str], Counter, bool]]:
    """Cleaned words, ratings, and whether it is of a test file, of each distinct text in the first of two parts."""
    texts: dict[bytes, tuple[list[str], Counter, bool]] = {}
    for text, code, test in reviews:
        cleaned = words(text)
        digest = blake2b(" ".join(cleaned).encode(), digest_size=16).digest()
        if cleaned and digest[0] < 128:
            _, ratings, was_test = texts.get(digest, (cleaned, Counter(), False))
            texts[digest] = (cleaned, ratings + Counter([code]), was_test or test)
    return texts


@settings(max_examples=200)
@given(REVIEWS, st.integers(1, 4), st.randoms(use_true_random=False), st.booleans())
def test_a_part_is_what_its_texts_are_however_they_came(reviews, tasks: int, random, test_input: bool) -> None:
    chosen = Settings(row_length=2, test_input=test_input, test_share=0.25)
    texts = expected(reviews)
    part = united([reviews[task::tasks] for task in range(tasks)], chosen, lambda v: random.sample(v, len(v)))
    if not texts:
        assert part is None
        return
    distinct = part.unite()
    once = united([reviews], chosen).unite()
    assert b"".join(pack_arrays(distinct.rows)) == b"".join(pack_arrays(once.rows))

    rows = []
    listed = distinct.rows["words"].tobytes().decode().split(" ")
    at = 0
    for length in distinct.rows["lengths"].tolist():
        rows.append([listed[number] for number in distinct.rows["ids"][at : at + length].tolist()])
        at += length
    kept = {digest: [word for word in found[0] if word != "the"] for digest, found in texts.items()}
    in_order = [digest for digest in sorted(texts) if kept[digest]]
    assert rows == [kept[digest][:2] for digest in in_order]
    in_test = {digest: found[2] if test_input else digest[0] < 64 for digest, found in texts.items()}
    assert distinct.rows["test"].tolist() == [in_test[digest] for digest in in_order]
    assert distinct.rows["code"].tolist() == [
        min(texts[d][1], key=lambda code: (-texts[d][1][code], code)) for d in in_order
    ]
    letters = distinct.dictionary.join_words(distinct.words).split()
    frequencies = dict(zip(letters, distinct.frequencies.tolist(), strict=True))
    assert frequencies == Counter(w.encode() for d in texts if not in_test[d] for w in kept[d])
    assert distinct.counts["distinct"] == len(texts)
    assert distinct.counts["conflicting"] == sum(len(found[1]) > 1 for found in texts.values())
    assert distinct.counts["wordless"] == len(texts) - len(in_order)
    assert distinct.rows["text"].tolist() == list(range(len(in_order)))
    assert set(distinct.rows["times"].tolist()) <= {1}


@settings(max_examples=200)
@given(REVIEWS, st.integers(1, 4), st.randoms(use_true_random=False), st.booleans())
def test_every_copy_of_a_text_is_kept_where_duplicates_are(reviews, tasks: int, random, test_input: bool) -> None:
    chosen = Settings(ragged=True, duplicates=True, test_input=test_input, test_share=0.25)
    part = united([reviews[task::tasks] for task in range(tasks)], chosen, lambda v: random.sample(v, len(v)))
    if part is None:
        return
    distinct = part.unite()
    once = united([reviews], chosen).unite()
    assert b"".join(pack_arrays(distinct.rows)) == b"".join(pack_arrays(once.rows))

    listed = distinct.rows["words"].tobytes().decode().split(" ")
    ends = np.cumsum(distinct.rows["lengths"])
    texts = [[listed[number] for number in ids] for ids in np.split(distinct.rows["ids"], ends[:-1])]
    found = Counter()
    for text, code, test, times in zip(*(distinct.rows[name].tolist() for name in COPIES), strict=True):
        found[" ".join(texts[text]), code, test] += times
    in_part = {" ".join(cleaned): digest for digest, (cleaned, _, _) in expected(reviews).items()}
    copies = [(" ".join(words(text)), code, test) for text, code, test in reviews]
    copies = [
        (cleaned, code, test if test_input else in_part[cleaned][0] < 64)
        for cleaned, code, test in copies
        if cleaned in in_part
    ]
    rows = Counter((" ".join(kept), code, test) for cleaned, code, test in copies if (kept := without(cleaned)))
    assert found == rows
    letters = distinct.dictionary.join_words(distinct.words).split()
    assert dict(zip(letters, distinct.frequencies.tolist(), strict=True)) == Counter(
        word.encode() for cleaned, _, test in copies if not test for word in without(cleaned)
    )
    assert distinct.counts["distinct"] == len(copies)
    assert distinct.counts["conflicting"] == distinct.counts["cut"] == 0
    assert distinct.counts["wordless"] == len(copies) - rows.total()
    assert distinct.counts["test"] == sum(times for (_, _, test), times in rows.items() if test)


def without(cleaned: str) -> list[str]:
    return [word for word in cleaned.split() if word not in STOPWORDS]


def test_a_text_repeated_without_end_costs_one_entry_a_block() -> None:
    collected = Collector([], 0)
    for _ in range(40):
        collected.add(["the same lamp"] * 1_000, [5] * 999 + [1], test=False)
    ((name, block),) = collected.blocks()
    assert name == b"0000"
    assert len(block) < 1_000
    part = PartReducer(Settings())
    part.add(block)
    distinct = part.unite()
    assert distinct.rows["code"].tolist() == [5]
    assert collected.counts == {"texts": 40_000, "empty": 0, "codes.before.5": 39_960, "codes.before.1": 40} | {
        f"codes.before.{code}": 0 for code in (0, 2, 3, 4)
    }


@pytest.mark.parametrize("words", ["letters", "tokens"])
def test_a_collector_forgets_words_of_megabytes(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.setattr(collector, "_MOST_LETTERS", 100)
    collected = Collector([], 0, words)
    for letter in "abc":
        collected.add([letter * 90], [1], test=False)
        assert collected.full == (letter == "b")
        if collected.full:
            list(collected.blocks())
            assert not collected.full


def test_a_collector_is_full_before_its_memory_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_MOST_TEXTS", 10)
    collected = Collector([], 0)
    collected.add([f"lamp {'x' * n}" for n in range(8)], [1] * 8, test=False)
    assert not collected.full
    collected.add([f"bulb {'y' * n}" for n in range(8)], [1] * 8, test=False)
    assert collected.full
    assert len(list(collected.blocks())) == 1
    assert not collected.full
    assert list(collected.blocks()) == []


@given(st.dictionaries(st.sampled_from(["a", "ids", "letters8"]), st.lists(st.integers(0, 255), max_size=5)))
def test_arrays_come_back_as_they_were(listed: dict[str, list[int]]) -> None:
    arrays = {name: np.array(values, np.uint8 if name == "a" else np.uint32) for name, values in listed.items()}
    back = unpack_arrays(b"".join(pack_arrays(arrays)))
    assert {name: (array.dtype, array.tolist()) for name, array in back.items()} == {
        name: (array.dtype, array.tolist()) for name, array in arrays.items()
    }
