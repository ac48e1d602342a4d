"""`shoal dataset info` as a person and a program meet it."""

import json
from collections import Counter
from pathlib import Path

import boto3
import h5py
import numpy as np
import pytest

from corpus.counts import final_counts
from corpus.dataset import DatasetWriter, RowBlock, write_dataset
from corpus.dataset_settings import Settings
from tests.bootstrap.cli.command import Done, shoal_here

SETTINGS = Settings(row_length=4, stopwords="none")
WORDS = ["good", "lamp", "bad"]


def info(*arguments: str | Path) -> Done:
    return shoal_here("dataset", "info", *arguments)


def rows(*given: tuple[list[int], int]) -> RowBlock:
    tokens = np.zeros((len(given), 4), np.uint16)
    for place, (row, _) in zip(tokens, given, strict=True):
        place[: len(row)] = row
    ratings = np.array([rating for _, rating in given], np.uint8)
    lengths = np.array([len(row) for row, _ in given], np.uint16)
    return RowBlock(tokens, lengths, (ratings > 3).astype(np.uint8), ratings)


TRAIN, TEST = rows(([2, 3], 5), ([4, 1, 3, 3], 1), ([2], 5)), rows(([3, 4], 2))


def make(path: Path, train: RowBlock = TRAIN) -> str:
    every = [*train.ratings.tolist(), *TEST.ratings.tolist()]
    count = len(every)
    flat = Counter(dict.fromkeys(("lines", "texts", "distinct", "lengths.1"), count))
    flat.update(f"codes.{when}.{rating}" for when in ("before", "after") for rating in every)
    flat.update(train=len(train.labels), test=1, tokens=int(train.lengths.sum()) + 2)
    flat.update(positive_train=int(train.labels.sum()), unknown_tokens=1)
    counts = final_counts(
        flat, settings=SETTINGS, positive_from=4, frequent_words=[("good", 2), ("lamp", 2), ("bad", 1)]
    )
    return write_dataset(path, train=train, test=TEST, vocabulary=WORDS, settings=SETTINGS, counts=counts)


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    make(tmp_path / "dataset.h5")
    return tmp_path / "dataset.h5"


def test_a_person_sees_shapes_settings_counts_digest_and_rows_as_words(dataset: Path) -> None:
    done = info(dataset)
    assert done.returncode == 0, done.stderr
    said = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "/train/tokens 3 x 4 uint16 3 shuffle and gzip" in "\n".join(said)
    assert "rating_range 1 to 5" in said
    assert "labelled no" in said
    assert "layout version 2" in said
    assert "most frequent words: good, lamp, bad" in said
    row = said.index("/train row 1: negative, rated 1, 4 words")
    assert said[row + 1] == "bad <unknown> lamp lamp"
    assert "/test row 0: negative, rated 2, 2 words" in said


def test_a_program_gets_the_same_as_json(dataset: Path, tmp_path: Path) -> None:
    digest = make(tmp_path / "again.h5")
    said = json.loads(info(dataset, "--json", "--sample", "1", "--check").stdout)
    assert (said["digest"], said["checked"], said["layout_version"]) == (digest, True, 2)
    assert said["bytes"] == dataset.stat().st_size
    assert said["arrays"]["/train/tokens"]["shape"] == [3, 4]
    assert said["settings"]["row_length"] == 4
    assert said["counts"]["frequent_words"][0] == ["good", 2]
    assert said["sample"] == [
        {"split": "train", "row": 0, "label": 1, "rating": 5, "words": ["good", "lamp"]},
        {"split": "test", "row": 0, "label": 0, "rating": 2, "words": ["lamp", "bad"]},
    ]


def test_no_sample_and_a_part_file(tmp_path: Path) -> None:
    path = tmp_path / "part-0000.h5"
    with DatasetWriter(path, SETTINGS, packed=False) as writer:
        writer.append("train", TRAIN)
        writer.finish(vocabulary=WORDS, stopwords=frozenset(), counts={})
    done = info(path, "--sample", "0")
    assert done.returncode == 0
    assert "no counts" in done.stdout
    assert "row 0" not in done.stdout


def absent(path: Path) -> None:
    path.unlink()


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def text(path: Path) -> None:
    path.write_text("no dataset")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-500])


def older(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file.attrs["layout_version"] = 1


def broken(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file["train/tokens"].id.write_direct_chunk((0, 0), b"no deflate stream")


def changed(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file["test/labels"][0] = 1


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (absent, "dataset.h5: no such file; `shoal preprocess` makes a dataset"),
        (folder, "dataset.h5 is a folder; name the dataset in it"),
        (text, "dataset.h5 is not an HDF5 file, or is damaged"),
        (cut, "dataset.h5 is not an HDF5 file, or is damaged"),
        (older, "dataset.h5 has layout version 1, and this Shoal reads 2 and 3; make it again"),
        (broken, "dataset.h5 is damaged: /train/tokens cannot be read"),
        (changed, "dataset.h5 was changed since it was made: the digest of its arrays is"),
    ],
)
def test_a_file_that_is_no_valid_dataset_is_reported_in_one_sentence(dataset: Path, harm, sentence: str) -> None:
    harm(dataset)
    done = info(dataset, "--check")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("shoal: ")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_wrong_use_is_reported(dataset: Path) -> None:
    for wrong in ("-1", "few", "1.5"):
        done = info(dataset, f"--sample={wrong}")
        assert done.returncode == 2
        assert "invalid value for '--sample'" in done.stderr
    assert info().returncode == 2


@pytest.mark.usefixtures("aws")
def test_a_dataset_on_s3_is_shown_and_checked(dataset: Path) -> None:
    client = boto3.client("s3")
    client.create_bucket(Bucket="pile")
    client.upload_file(str(dataset), "pile", "d/dataset.h5")
    here = json.loads(info(dataset, "--json").stdout)
    for flags in ([], ["--check"]):
        there = json.loads(info("s3://pile/d/dataset.h5", "--json", *flags).stdout)
        assert {**there, "dataset": here["dataset"], "checked": False} == here
    missing = info("s3://pile/d/other.h5")
    assert missing.returncode == 1
    assert "there is nothing at s3://pile/d/other.h5" in missing.stderr
    assert "Traceback" not in missing.stderr


def test_whole_texts_and_named_classes_are_shown(tmp_path: Path) -> None:
    path, classes = tmp_path / "dataset.h5", ("art", "sport", "war")
    texts = RowBlock(
        np.array([2, 3, 4, 1, 3, 3, 2], np.uint16),
        np.array([2, 4, 1]),
        np.arange(3, dtype=np.uint8),
        np.zeros(3, np.uint8),
    )
    settings = Settings(ragged=True, words="tokens", labelled=True, classes=classes)
    flat = Counter(lines=4, texts=4, distinct=4, train=3, test=1, tokens=9, unknown_tokens=1)
    flat.update({"lengths.1": 1, "lengths.2": 2, "lengths.4": 1})
    flat.update({f"codes.{when}.{label}": 1 + (label == 1) for when in ("before", "after") for label in range(3)})
    counts = final_counts(flat, settings=settings, positive_from=0, frequent_words=[("good", 2)])
    test = RowBlock(np.array([3, 4], np.uint16), np.array([2]), np.ones(1, np.uint8), np.zeros(1, np.uint8))
    words = ["good", "\x1b[2j", "("]
    write_dataset(path, train=texts, test=test, vocabulary=words, settings=settings, counts=counts)
    done = info(path, "--check")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    said = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "layout version 3" in said
    assert "rows 3 to train, 1 to test; whole texts of 2.2 words on average, 9 words in all" in said
    assert "classes 3: art, sport, war" in said
    assert "/train/ends 3 int64 3 shuffle and gzip" in "\n".join(said)
    assert "words tokens" in said
    assert any(line.startswith("sport 2") for line in said)
    row = said.index("/train row 1: sport, 4 words")
    assert said[row + 1] == "( <unknown> ?[2j ?[2j"
    found = json.loads(info(path, "--json").stdout)
    assert (found["layout_version"], found["rows"]) == (3, {"train": 3, "test": 1})
    assert found["settings"]["classes"] == list(classes)
