"""The collector of a mapper and the reducer make the same distinct texts for every split and order."""

from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.dataset_settings import Settings
from corpus.dictionary import Dictionary
from corpus.text import digest, words
from jobs import collector
from jobs.collector import Collector
from jobs.part_reducer import DistinctTexts, PartReducer
from jobs.records import arrays_of, block_of
from jobs.texts import count_words
from tests.jobs.piles import plan_in

STOPWORDS = ["the"]
COPIES = ("text", "code", "test", "times")
WORDS = st.sampled_from(["the", "a", "lamp", "don't", "incomprehensibilities", "!"])
TEXTS = st.lists(WORDS, max_size=4).map(" ".join)
REVIEWS = st.lists(st.tuples(TEXTS, st.integers(1, 5), st.booleans()), min_size=1, max_size=30)


def united(tasks: list[list[tuple[str, int, bool]]], chosen: Settings, order=lambda values: values) -> PartReducer:
    values = []
    for task in tasks:
        collected = Collector(STOPWORDS, 1, chosen)
        for place, (text, code, test) in enumerate(task, 1):
            collected.add([text], [code], test)
            if len(text) % 3 == 0 or place == len(task):
                values += [block for number, block in collected.blocks() if number == 0]
    part = PartReducer(chosen)
    for value in order(values):
        part.add(value)
    return part if values else None


@dataclass
class Text:
    """Distinct text of the first of two parts, by the plain rules."""

    digest: bytes
    kept: list[str]
    codes: Counter[int]
    """Codes of its rows; without duplicates, codes of its copies."""
    copies: Counter[tuple[int, bool]]


def plain(reviews: list[tuple[str, int, bool]], chosen: Settings) -> list[Text]:
    texts: dict[bytes, Text] = {}
    for text, code, test in reviews:
        cleaned = words(text)
        digest = blake2b(" ".join(cleaned).encode(), digest_size=16).digest()
        if cleaned and digest[0] < 128:
            kept = [word for word in cleaned if word not in STOPWORDS]
            found = texts.setdefault(digest, Text(digest, kept, Counter(), Counter()))
            found.codes[code] += 1
            found.copies[code, test if chosen.test_input else digest[0] < 64] += 1
    for found in texts.values():
        if not chosen.duplicates:
            code = min(found.codes, key=lambda code: (-found.codes[code], code))
            found.copies = Counter([(code, any(test for _, test in found.copies))])
    return [texts[digest] for digest in sorted(texts)]


@settings(max_examples=100)
@given(REVIEWS, st.integers(1, 4), st.randoms(use_true_random=False), st.booleans(), st.booleans())
def test_a_part_has_its_texts_in_any_order(reviews, tasks: int, random, test_input: bool, duplicates: bool) -> None:
    chosen = Settings(
        **({"ragged": True, "duplicates": True} if duplicates else {"row_length": 2}),
        test_input=test_input,
        test_share=0.25,
    )
    part = united([reviews[task::tasks] for task in range(tasks)], chosen, lambda v: random.sample(v, len(v)))
    texts = plain(reviews, chosen)
    if part is None:
        assert texts == []
        return
    distinct = part.unite()
    once = united([reviews], chosen).unite()
    assert block_of(distinct.rows) == block_of(once.rows)

    rows = [text for text in texts if text.kept]
    listed = distinct.rows["words"].tobytes().decode().split(" ")
    ends = np.cumsum(distinct.rows["lengths"])
    found = [[listed[number] for number in ids] for ids in np.split(distinct.rows["ids"], ends[:-1])]
    assert found[: len(rows)] == [text.kept[: None if duplicates else 2] for text in rows]
    copies: Counter[tuple[int, int, int]] = Counter()
    for text, code, test, times in zip(*(distinct.rows[name].tolist() for name in COPIES), strict=True):
        copies[text, code, test] += times
    assert copies == {(n, *copy): times for n, text in enumerate(rows) for copy, times in text.copies.items()}
    frequencies: Counter[bytes] = Counter()
    for text in rows:
        times = sum(times for (_, test), times in text.copies.items() if not test)
        frequencies.update({word.encode(): times * text.kept.count(word) for word in text.kept if times})
    letters = distinct.dictionary.join_words(distinct.words).split()
    assert dict(zip(letters, distinct.frequencies.tolist(), strict=True)) == frequencies
    of_all, of_rows = (sum(text.copies.total() for text in each) for each in (texts, rows))
    assert (distinct.counts["distinct"], distinct.counts["wordless"]) == (of_all, of_all - of_rows)
    assert distinct.counts["conflicting"] == (0 if duplicates else sum(len(text.codes) > 1 for text in texts))
    in_test = sum(times for text in rows for (_, test), times in text.copies.items() if test)
    assert (distinct.counts["test"], distinct.counts["train"]) == (in_test, of_rows - in_test)
    cut = 0 if duplicates else sum(len(text.kept) > 2 for text in rows)
    assert distinct.counts["cut"] == cut


@pytest.mark.parametrize(("count", "width"), [(1 << 16, np.uint16), ((1 << 16) + 1, np.uint32)])
def test_ids_get_more_bits_only_if_there_are_more_words(count: int, width: type) -> None:
    chosen = np.random.default_rng(0).permutation(26**4)[:count]
    text = " ".join("".join(chr(97 + number // 26**place % 26) for place in range(4)) for number in chosen.tolist())
    collected = Collector([], 0, Settings())
    collected.add([text], [5], test=False)
    ((_, block),) = collected.blocks()
    part = PartReducer(Settings(ragged=True))
    part.add(block)
    for arrays in (block, part.unite().rows):
        listed = arrays["words"].tobytes().decode().split(" ")
        assert (arrays["ids"].dtype, arrays["lengths"].tolist()) == (width, [count])
        assert " ".join(listed[number] for number in arrays["ids"]) == text


@pytest.mark.parametrize(("count", "width"), [((1 << 32) - 1, np.uint32), (1 << 32, np.int64)])
def test_frequencies_get_more_bits_only_if_needed(count: int, width: type) -> None:
    dictionary = Dictionary()
    words = dictionary.add(b"lamp bulb").astype(np.int64)
    none, frequencies = Counter[str](), np.array([count, 7])
    distinct = DistinctTexts(rows={}, dictionary=dictionary, words=words, frequencies=frequencies, counts=none)
    ((bucket, block),) = count_words(distinct, plan_in("", part_bits=0))
    counts = block["counts"]
    assert (bucket, counts.dtype, counts.tolist()) == (0, width, [count, 7])


@pytest.mark.parametrize("bits", [0, 1, 3])
def test_each_part_has_the_texts_with_its_digest_prefix(bits: int) -> None:
    collected = Collector([], bits, Settings())
    texts = [f"lamp {chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(200)]
    collected.add(texts, [5] * 200, test=False)
    found = {}
    for number, block in collected.blocks():
        part = PartReducer(Settings(ragged=True))
        part.add(block)
        rows = part.unite().rows
        listed = rows["words"].tobytes().decode().split(" ")
        pairs = [" ".join(listed[number] for number in ids) for ids in rows["ids"].reshape(-1, 2)]
        found[number] = pairs
    expected: dict[int, list[str]] = {}
    for text in sorted(texts, key=lambda text: digest(text.split())):
        expected.setdefault(digest(text.split())[0] >> (8 - bits), []).append(text)
    assert found == expected


def test_a_repeated_text_takes_one_entry_per_block() -> None:
    collected = Collector([], 0, Settings())
    for _ in range(40):
        collected.add(["the same lamp"] * 1_000, [5] * 999 + [1], test=False)
    ((number, block),) = collected.blocks()
    assert number == 0
    assert len(block_of(block)) < 1_000
    part = PartReducer(Settings())
    part.add(block)
    distinct = part.unite()
    assert distinct.rows["code"].tolist() == [5]
    assert collected.counts == {"texts": 40_000, "empty": 0, "codes.before.5": 39_960, "codes.before.1": 40} | {
        f"codes.before.{code}": 0 for code in (0, 2, 3, 4)
    }


@pytest.mark.parametrize("words", ["letters", "tokens"])
def test_a_collector_forgets_words_of_megabytes(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.setattr(collector, "_MAX_LETTERS", 100)
    collected = Collector([], 0, Settings(words=words))
    for letter in "abc":
        collected.add([letter * 90], [1], test=False)
        assert collected.full == (letter == "b")
        if collected.full:
            list(collected.blocks())
            assert not collected.full


def test_a_collector_is_full_before_its_memory_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_MAX_TEXTS", 10)
    collected = Collector([], 0, Settings())
    collected.add([f"lamp {'x' * n}" for n in range(8)], [1] * 8, test=False)
    assert not collected.full
    collected.add([f"bulb {'y' * n}" for n in range(8)], [1] * 8, test=False)
    assert collected.full
    assert len(list(collected.blocks())) == 1
    assert not collected.full
    assert list(collected.blocks()) == []


@given(st.dictionaries(st.sampled_from(["a", "ids", "letters8"]), st.lists(st.integers(0, 255), max_size=5)))
def test_arrays_are_unpacked_as_they_were_packed(listed: dict[str, list[int]]) -> None:
    arrays = {name: np.array(values, np.uint8 if name == "a" else np.uint32) for name, values in listed.items()}
    back = arrays_of(block_of(arrays))
    assert {name: (array.dtype, array.tolist()) for name, array in back.items()} == {
        name: (array.dtype, array.tolist()) for name, array in arrays.items()
    }
