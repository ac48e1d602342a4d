"""Loading of a dataset, and the datasets that are refused."""

import os
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from common.errors import DataError, TrainingError
from corpus.dataset import RowBlock as Written
from corpus.dataset import open_dataset, write_dataset
from corpus.dataset_settings import Settings
from tests.trainer.conftest import RAGGED, VOCABULARY, make_rows
from tests.trainer.runs import raising
from trainer.classification.data import load_data, place_parts
from trainer.classification.losses import Scale
from trainer.classification.mapped import map_rows
from trainer.classification.rows import TextRows, WordDropout
from trainer.computing.dropout import keys
from trainer.config import configured

CPU = torch.device("cpu")


def written(count: int, **changes: np.ndarray) -> Written:
    labels, lengths = (np.arange(count) % 2).astype(np.uint8), np.full(count, 4, np.uint16)
    return Written(np.full((count, 4), 2, np.uint16), lengths, labels, np.ones(count, np.uint8))._replace(**changes)


def put(path: Path, train: Written, test: Written, **ratings: Any) -> Path:
    settings = Settings(row_length=4, vocabulary_size=2, **ratings)
    write_dataset(path, train=train, test=test, vocabulary=["a", "b"], settings=settings)
    return path


def test_a_share_of_the_training_rows_does_not_change_validation_and_test_rows(dataset):
    whole, part = load_data(dataset), load_data(dataset, learned=lambda every: every // 4)
    assert part.sizes == {**whole.sizes, "training": 475}
    assert np.array_equal(part.training.tokens, whole.training.tokens[:475])
    assert np.array_equal(part.validation.tokens, whole.validation.tokens)
    share = configured({"train_share": 0.25, "data": "d", "output": "o"})
    assert (share.options.rows_to_learn(5_000), share.options.rows_to_learn(1)) == (1_250, 1)


def test_a_share_of_ragged_rows_is_taken_at_equal_distances(tmp_path):
    rows = make_rows(2000, seed=1)
    labels = np.sort(rows.labels)
    train = rows._replace(tokens=rows.tokens[rows.tokens > 0], labels=labels, ratings=4 * labels + 1)
    path = tmp_path / "d.h5"
    write_dataset(path, train=train, test=train, vocabulary=VOCABULARY, settings=RAGGED)
    whole, part = load_data(path).training, load_data(path, learned=lambda every: every // 10).training
    assert len(part) == round(0.1 * len(whole))
    assert abs(part.labels.mean() - whole.labels.mean()) < 0.02
    first = part.whole_batch(np.arange(1), CPU)
    assert torch.equal(first.tokens, whole.whole_batch(np.arange(1), CPU).tokens)
    last, there = (np.array([int(number)]) for number in (len(part) - 1, (len(part) - 1) * (len(whole) / len(part))))
    assert torch.equal(part.whole_batch(last, CPU).tokens, whole.whole_batch(there, CPU).tokens)


def test_a_padded_batch_contains_the_first_words_of_ragged_rows(tmp_path):
    path = tmp_path / "whole.h5"
    labels = np.arange(6, dtype=np.uint8) % 2
    rows = Written(np.full(6 * 500, 2), np.full(6, 500), labels, labels)
    settings = Settings(ragged=True, labelled=True, vocabulary_size=5)
    write_dataset(path, train=rows, test=rows, vocabulary=["word"], settings=settings)
    data = load_data(path)
    assert (data.row_length, data.scale) == (400, Scale(0, 1, 1))
    for words, read in ((400, data), (100, data.cut_to(100))):
        assert read.row_length == words
        for part in (read.training, read.validation, read.test):
            assert part.batch(np.array([0]), torch.device("cpu")).lengths.tolist() == [words]


def test_data_keep_the_format_of_ratings(tmp_path):
    halves = {"rating_steps": 2, "rating_range": (1, 10), "rating_fraction": True, "positive_from": 7}
    data = load_data(put(tmp_path / "d.h5", written(100), written(100), **halves))
    assert (data.scale, data.rating_steps, data.rating_fraction) == (Scale(1, 10, 7), 2, True)


def test_a_batch_is_sorted_by_length_and_cut_to_the_longest_row(dataset):
    rows = load_data(dataset).training
    numbers = np.array([5, 900, 17, 4])
    batch = rows.batch(numbers, CPU)
    assert batch.lengths.tolist() == sorted(rows.lengths[numbers].tolist(), reverse=True)
    assert batch.tokens.shape == (4, int(batch.lengths[0]))
    columns = (batch.tokens.tolist(), batch.lengths.tolist(), batch.labels.tolist())
    pairs = {(tuple(tokens[:length]), label) for tokens, length, label in zip(*columns, strict=True)}
    assert pairs == {(tuple(rows.tokens[i, : rows.lengths[i]].tolist()), int(rows.labels[i])) for i in numbers}


def test_word_dropout_shortens_rows(dataset):
    rows, numbers = load_data(dataset).training, np.arange(100, 160)
    masks, words = keys(0, 7, numbers), WordDropout(0.5, load_data(dataset).row_length, seed=0)
    batch = rows.batch(numbers, CPU, keys=masks, words=words)
    whole = rows.lengths[numbers].astype(np.int64)
    lengths = words.lengths(whole, masks)
    kept = zip(numbers, words.places(whole, masks, lengths, CPU).numpy(), lengths, strict=True)
    texts = [rows.tokens[number, places[:length]].tolist() for number, places, length in kept]
    found = zip(batch.tokens.tolist(), batch.lengths.tolist(), batch.keys.tolist(), strict=True)
    assert sorted((key, tokens[:length]) for tokens, length, key in found) == sorted(
        zip(masks.tolist(), texts, strict=True)
    )
    behind = torch.arange(batch.tokens.shape[1]) >= batch.lengths[:, None]
    assert int(batch.tokens[behind].abs().sum()) == 0
    assert batch.lengths.tolist() == sorted(lengths.tolist(), reverse=True)
    assert batch.tokens.shape[1] == int(batch.lengths[0])


def test_the_balancing_weight_is_the_fourth_root_of_negatives_over_positives(tmp_path):
    labels = np.array([0] * 15 + ([1] * 16 + [0]) * 17, np.uint8)
    data = load_data(put(tmp_path / "d.h5", written(304, labels=labels), written(9)))
    assert data.balancing_weight() == pytest.approx(0.5)


def test_datasets_without_enough_rows_or_classes_are_refused(tmp_path, messages):
    nine, codes = written(9), np.arange(9, dtype=np.uint8)
    for train, test in (
        (written(0), nine),
        (nine, written(0)),
        *((written(9, labels=labels), nine) for labels in (codes // 9 + 1, codes // 9, codes % 3)),
        (written(9, tokens=np.full((9, 4), 4, np.uint16)), nine),
        (written(9, ratings=codes // 9 + 7), nine),
        (nine, written(9, lengths=np.zeros(9, np.uint16))),
    ):
        path = put(tmp_path / "d.h5", train, test)
        for memory in (None, 0):
            with messages.raises(TrainingError):
                load_data(path, memory=memory, cache=tmp_path / "cache")
    assert not list((tmp_path / "cache").glob(".*"))


def test_rows_that_a_killed_run_or_a_cleaner_of_old_files_damaged_are_written_again(dataset, tmp_path):
    expected = load_data(dataset)
    home, half = tmp_path / expected.digest, tmp_path / f".{expected.digest}.partial"
    half.mkdir()
    (half / "train.tokens.npy").write_bytes(b"half")
    for spoil in (
        lambda: None,
        lambda: (home / "test.labels.npy").unlink(),
        lambda: os.truncate(home / "train.tokens.npy", 999),
    ):
        spoil()
        rows = load_data(dataset, memory=0, cache=tmp_path).training
        assert np.array_equal(rows.tokens, expected.training.tokens)
        assert not half.exists()


@pytest.fixture
def folder_of_a_person(tmp_path):
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "chapter1.txt").write_text("all there is")
    return folder


DIGESTS = {
    "a path": "{}",
    "a path above": "../thesis",
    "empty": "",
    "a point": ".",
    "a digit less": "a" * 31,
    "a digit more": "a" * 33,
    "a line": "a" * 32 + "\n",
}


@pytest.mark.parametrize("digest", DIGESTS.values(), ids=DIGESTS)
def test_an_invalid_digest_never_becomes_a_path(dataset, tmp_path, folder_of_a_person, digest, messages):
    digest = digest.format(folder_of_a_person)
    file = tmp_path / "d.h5"
    file.write_bytes(dataset.read_bytes())
    with h5py.File(file, "r+") as opened:
        opened.attrs["digest"] = digest
    with messages.raises(DataError):
        load_data(file, memory=0, cache=tmp_path / "cache")
    # Also for a caller that trusts the digest in the file.
    with open_dataset(dataset) as believed, pytest.raises(DataError, match="is not a digest"):
        map_rows(replace(believed, digest=digest), tmp_path / "cache", lambda _split, _rows: None)
    assert [path.name for path in folder_of_a_person.iterdir()] == ["chapter1.txt"]
    assert not (tmp_path / "cache").exists()


def test_a_cache_folder_with_other_files_is_not_removed(dataset, tmp_path, folder_of_a_person, messages):
    home = tmp_path / "cache" / load_data(dataset).digest
    home.parent.mkdir()
    messages.hide(home.name, "DIGEST")
    folder_of_a_person.rename(home)
    with messages.raises(TrainingError):
        load_data(dataset, memory=0, cache=tmp_path / "cache")
    assert [path.name for path in home.iterdir()] == ["chapter1.txt"]


@pytest.mark.parametrize("name", ["{}", ".{}.partial", "{}.lock"])
def test_no_link_in_the_cache_is_followed(dataset, tmp_path, folder_of_a_person, name, messages):
    cache = tmp_path / "cache"
    cache.mkdir()
    (folder_of_a_person / "train.tokens.npy").write_text("rows of somebody")
    is_lock = name.endswith("lock")
    digest = load_data(dataset).digest
    messages.hide(digest, "DIGEST")
    link = cache / name.format(digest)
    link.symlink_to(folder_of_a_person / "chapter1.txt" if is_lock else folder_of_a_person)
    with messages.raises(TrainingError):
        load_data(dataset, memory=0, cache=cache)
    assert (folder_of_a_person / "train.tokens.npy").read_text() == "rows of somebody"
    assert (folder_of_a_person / "chapter1.txt").read_text() == "all there is"


def test_rows_with_another_digest_are_not_cached(dataset, tmp_path):
    """Otherwise a run on the dataset with this digest would train on other rows."""
    whole = load_data(dataset)
    file = tmp_path / "d.h5"
    file.write_bytes(dataset.read_bytes())
    with h5py.File(file, "r+") as opened:
        opened["train/labels"][:] = 1 - opened["train/labels"][:]
    with pytest.raises(DataError, match="changed after it was created"):
        load_data(file, memory=0, cache=tmp_path / "cache")
    kept = load_data(dataset, memory=0, cache=tmp_path / "cache")
    assert np.array_equal(kept.training.labels, whole.training.labels)


def test_the_cache_of_another_user_is_not_used(dataset, tmp_path, folder_of_a_person, monkeypatch, messages):
    """tests/common/test_private_folders.py tests further cases of such a folder."""
    nobody = 1_000_000 + os.getpid()
    monkeypatch.setattr("common.private_folders.os.geteuid", lambda: nobody)
    place = Path("/var/tmp" if Path("/var/tmp").is_dir() else gettempdir()) / f"shoal-rows-{nobody}"
    place.symlink_to(folder_of_a_person)
    messages.hide(place, "CACHE")
    try:
        with messages.raises(DataError):
            load_data(dataset, memory=0)
    finally:
        place.unlink()


def test_rows_that_do_not_fit_into_memory_are_an_error(dataset, monkeypatch, messages):
    monkeypatch.setattr("corpus.packing.StoredArray.__getitem__", raising(MemoryError()))
    with messages.raises(TrainingError):
        load_data(dataset)


def test_rows_go_to_disk_if_they_would_fill_half_of_the_memory(dataset, tmp_path):
    needed = 2400 * 44  # bytes
    for memory, on_disk in ((2 * needed, False), (2 * needed - 2, True)):
        rows = load_data(dataset, cache=tmp_path, memory=memory).training
        assert isinstance(rows.tokens, np.memmap) == on_disk


@pytest.mark.parametrize(
    ("free", "copied"), [(152_000, [True, True, False]), (151_998, [False, True, False]), (160_000, [True, True, True])]
)
def test_rows_go_to_a_gpu_if_they_fill_a_small_share_of_its_memory(dataset, monkeypatch, free, copied):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (free, free))
    monkeypatch.setattr(TextRows, "copy_to", lambda own, _device: replace(own, device_tokens=own.tokens))
    data = place_parts(load_data(dataset), torch.device("cuda"))
    parts = (data.training, data.validation, data.test)  # 76,000, 4,000 and 16,000 bytes
    assert [rows.device_tokens is not None for rows in parts] == copied


def test_an_unwritable_cache_is_an_error(dataset, tmp_path, messages):
    (tmp_path / "cache").write_text("in the way")
    with messages.raises(TrainingError):
        load_data(dataset, memory=0, cache=tmp_path / "cache")
