"""Ragged and fixed rows make the same batches, from memory and from disk; and word dropout."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from common.errors import TrainingError
from corpus.dataset import RowBlock, write_dataset
from corpus.dataset_settings import Settings
from trainer.classification.data import load_data
from trainer.classification.rows import FEWEST_WORDS, RaggedRows, Rows, TextBatch, TextRows, WordDropout
from trainer.computing.dropout import keys

CPU = torch.device("cpu")
CUT = 6
IDS = np.array([2, 9, 32_767, 32_768, 65_535])


def both(lengths: list[int], dtype: Any = np.uint16) -> tuple[TextRows, RaggedRows]:
    """Return the same rows, fixed and ragged."""
    whole = np.array(lengths, np.uint32)
    tokens = IDS[np.random.default_rng(0).integers(0, len(IDS), whole.sum())].astype(dtype)
    ends, cut = np.cumsum(whole, dtype=np.int64), np.minimum(whole, CUT).astype(np.uint16)
    padded = np.zeros((len(lengths), CUT), dtype)
    for row, end, length, kept in zip(padded, ends, lengths, cut, strict=True):
        row[:kept] = tokens[end - length : end][:kept]
    labels = np.arange(len(lengths), dtype=np.uint8) % 3
    same = {"labels": labels, "ratings": labels}
    ragged = RaggedRows(tokens=tokens, lengths=whole, ends=ends, row_length=CUT, **same)
    return TextRows(tokens=padded, lengths=cut, **same), ragged


def assert_same(one: TextBatch, other: TextBatch) -> None:
    for name in ("tokens", "lengths", "labels", "ratings", "keys"):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert (mine is None and theirs is None) or (mine.dtype == theirs.dtype and torch.equal(mine, theirs)), name


LENGTHS = st.lists(st.integers(1, 12), min_size=1, max_size=30)


@given(LENGTHS, st.sampled_from([np.uint16, np.uint32]), st.booleans(), st.data())
def test_fixed_and_ragged_rows_make_the_same_padded_batches_from_memory_and_from_a_device(lengths, dtype, drop, data):
    numbers = np.array(data.draw(st.lists(st.integers(0, len(lengths) - 1), min_size=1, max_size=9)))
    how: dict[str, Any] = {}
    if drop:
        how = {"keys": keys(0, 7, numbers), "words": WordDropout(0.4, CUT, seed=0)}
    fixed, ragged = both(lengths, dtype)
    ids = sorted({*fixed.tokens[numbers].flatten().tolist()} - {0})
    for rows in (fixed, ragged, fixed.copy_to(CPU), ragged.copy_to(CPU)):
        assert_same(rows.batch(numbers, CPU, **how), fixed.batch(numbers, CPU, **how))
        assert rows.ids(numbers, 65_536).tolist() == ids
        assert rows.ids(numbers, 1000).tolist() == sorted({each if each < 1000 else 1 for each in ids})


@given(LENGTHS, st.sampled_from([np.uint16, np.uint32]), st.booleans(), st.data())
def test_a_whole_batch_is_its_concatenated_rows(lengths, dtype, on_device, data):
    numbers = np.array(data.draw(st.lists(st.integers(0, len(lengths) - 1), min_size=1, max_size=9)))
    _, rows = both(lengths, dtype)
    texts = np.split(rows.tokens, rows.ends[:-1])
    batch = (rows.copy_to(CPU) if on_device else rows).whole_batch(numbers, CPU, keys=numbers + 1)
    assert batch.tokens.dtype == torch.int32
    assert batch.tokens.tolist() == np.concatenate([texts[number] for number in numbers]).tolist()
    assert batch.lengths.tolist() == [lengths[number] for number in numbers]
    assert batch.labels.tolist() == batch.ratings.tolist() == (numbers % 3).tolist()
    assert (batch.keys is not None and batch.keys.tolist(), len(batch)) == ((numbers + 1).tolist(), len(numbers))


@given(LENGTHS, st.integers(0, 9), st.integers(1, 30))
def test_a_slice_of_ragged_rows_makes_the_same_batches(lengths, start, end):
    _, rows = both(lengths)
    part, numbers = rows[start:end], np.arange(len(lengths))[start:end]
    assert part.lengths.tolist() == lengths[start:end]
    if len(part):
        assert_same(part.batch(np.arange(len(part)), CPU), rows.batch(numbers, CPU))


def block(count: int, classes: int = 2, seed: int = 0) -> RowBlock:
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 300, count)
    tokens = generator.integers(2, 62, lengths.sum()).astype(np.uint16)
    labels = (np.arange(count) % classes).astype(np.uint8 if classes <= 256 else np.uint16)
    return RowBlock(tokens, lengths, labels, np.full(count, 5, np.uint8))


SETTINGS = Settings(ragged=True, vocabulary_size=60)
VOCABULARY = [f"w{number}" for number in range(60)]


def write(path: Path, train: RowBlock, test: RowBlock, settings: Settings = SETTINGS) -> Path:
    write_dataset(path, train=train, test=test, vocabulary=VOCABULARY, settings=settings)
    return path


def assert_same_rows(one: Rows, other: Rows) -> None:
    numbers = np.random.default_rng(1).permutation(len(one))
    assert_same(one.batch(numbers, CPU), other.batch(numbers, CPU))
    assert torch.equal(one.whole_batch(numbers, CPU).tokens, other.whole_batch(numbers, CPU).tokens)


def test_ragged_rows_on_disk_equal_those_in_memory_and_are_written_once(tmp_path):
    path = write(tmp_path / "d.h5", block(400), block(50, seed=1))
    in_memory = load_data(path)
    assert (len(in_memory.validation), len(in_memory.training), in_memory.row_length) == (20, 380, 400)
    written = set()
    for _ in range(2):  # written, then found in the cache
        on_disk = load_data(path, memory=0, cache=tmp_path / "cache")
        assert isinstance(on_disk.training.tokens, np.memmap)
        for part in ("training", "validation", "test"):
            assert_same_rows(getattr(in_memory, part), getattr(on_disk, part))
        files = (tmp_path / "cache" / in_memory.digest).iterdir()
        written.add(frozenset((file.name, file.stat().st_ino) for file in files))
    assert len(written) == 1
    assert_same_rows(in_memory.training, in_memory.training.copy_to(CPU))


def test_rows_of_many_classes_have_their_labels_and_names(tmp_path):
    names = tuple(f"class {number:03}" for number in range(300))
    settings = replace(SETTINGS, labelled=True, classes=names)
    path = write(tmp_path / "d.h5", block(3_000, classes=300), block(50, classes=300), settings)
    for memory in (None, 0):
        data = load_data(path, memory=memory, cache=tmp_path / "cache")
        assert (data.classes, data.words) == (names, "letters")
        batch = data.training.batch(np.arange(300), CPU)
        assert sorted(batch.labels.tolist()) == sorted(batch.ratings.tolist()) == list(range(300))


@pytest.mark.parametrize("memory", [None, 0], ids=["memory", "disk"])
def test_invalid_ragged_rows_are_refused(tmp_path, memory, messages):
    three = replace(SETTINGS, labelled=True, classes=("art", "sport", "war"))
    for train, settings in (
        (block(99), three),
        (block(99, classes=4), three),
        (block(99)._replace(labels=np.ones(99, np.uint8)), SETTINGS),
        (block(99)._replace(tokens=block(99).tokens + 1), SETTINGS),
    ):
        path = write(tmp_path / "d.h5", train, block(9), settings)
        with messages.raises(TrainingError):
            load_data(path, memory=memory, cache=tmp_path / "cache")


def kept(words: WordDropout, lengths: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> tuple[Any, Any]:
    """Return the lengths and places of the words that rows keep."""
    lengths_kept = words.lengths(lengths, numbers)
    return lengths_kept, words.places(lengths, numbers, lengths_kept, CPU).numpy()


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.floats(0.05, 0.95), st.data())
def test_word_dropout_keeps_the_order_and_depends_only_on_the_key(lengths, share, data):
    words, numbers = WordDropout(share, 40, seed=1), keys(2, 3, np.arange(len(lengths)))
    counts, all_places = kept(words, np.array(lengths), numbers)
    for length, count, places in zip(lengths, counts.tolist(), all_places.tolist(), strict=True):
        assert min(FEWEST_WORDS, length) <= count <= length
        assert places[:count] == sorted(set(places[:count]))
        assert 0 <= places[0] <= places[count - 1] < length
    row = data.draw(st.integers(0, len(lengths) - 1))
    (count,), (places,) = kept(words, np.array(lengths[row : row + 1]), numbers[row : row + 1])
    assert count == counts[row]
    assert places[:count].tolist() == all_places[row, :count].tolist()


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_word_dropout_drops_its_share_at_every_position(share):
    counts, places = kept(WordDropout(share, 30, seed=0), np.full(40_000, 30), keys(0, 0, np.arange(40_000)))
    real = np.arange(places.shape[1]) < counts[:, None]
    assert np.bincount(places[real], minlength=30) / 40_000 == pytest.approx(1 - share, abs=0.03)


def test_a_row_that_would_lose_too_many_words_keeps_four_consecutive_ones():
    counts, places = kept(WordDropout(0.999999, 9, seed=0), np.full(9_000, 9), keys(0, 0, np.arange(9_000)))
    assert set(counts.tolist()) == {FEWEST_WORDS}
    places = places[:, :FEWEST_WORDS]
    assert {tuple(row) for row in (places - places[:, :1]).tolist()} >= {(0, 1, 2, 3)}
    assert len({tuple(row) for row in places.tolist()}) == 9
    assert np.bincount(places.flatten(), minlength=9) / 9_000 == pytest.approx(FEWEST_WORDS / 9, abs=0.03)
