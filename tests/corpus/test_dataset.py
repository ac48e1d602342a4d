import subprocess
import sys
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DataError
from corpus.counts import final_counts
from corpus.dataset import DatasetWriter, RowBlock, open_dataset, write_dataset
from corpus.dataset_settings import Settings

VOCABULARY = ["good", "bad", "it's"]
NO_COUNTS = final_counts({}, settings=Settings(), positive_from=4, frequent_words=[("good", 7)])


def rows(count: int, length: int = 4, seed: int = 0) -> RowBlock:
    random = np.random.default_rng(seed)
    lengths = random.integers(1, length + 1, count).astype(np.uint16)
    tokens = random.integers(1, 5, (count, length)).astype(np.uint16) * (np.arange(length) < lengths[:, None])
    return RowBlock(
        tokens, lengths, random.integers(0, 2, count).astype(np.uint8), random.integers(1, 6, count, np.uint8)
    )


def written(path: Path, train: RowBlock, test: RowBlock) -> str:
    return write_dataset(path, train=train, test=test, vocabulary=VOCABULARY, settings=Settings(row_length=4))


@settings(max_examples=20)
@given(st.integers(0, 50), st.integers(0, 50), st.lists(st.integers(0, 50), max_size=4))
def test_the_same_rows_in_other_blocks_are_the_same_dataset(
    tmp_path_factory: pytest.TempPathFactory, train: int, test: int, cuts: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("blocks")
    whole = written(folder / "whole.h5", rows(train), rows(test, seed=1))
    with DatasetWriter(folder / "cut.h5", Settings(row_length=4)) as writer:
        edges = [0, *sorted(min(cut, train) for cut in cuts), train]
        for start, end in pairwise(edges):
            writer.append("train", RowBlock(*(array[start:end] for array in rows(train))))
        writer.append("test", rows(test, seed=1))
        blockwise = writer.finish(vocabulary=VOCABULARY, stopwords=frozenset(), counts={})
    assert whole == blockwise
    with open_dataset(folder / "cut.h5") as dataset:
        assert dataset.computed_digest() == dataset.digest == whole
        for array, expected in zip(
            dataset.train.arrays.values(),
            rows(train),
            strict=True,
        ):
            assert np.array_equal(array[:], expected)


def test_a_dataset_says_what_it_was_made_with(tmp_path: Path) -> None:
    path = tmp_path / "d.h5"
    chosen = Settings(row_length=4, positive_from=3, rating_range=(1, 10), stopwords="none")
    write_dataset(
        path,
        train=rows(3),
        test=rows(2),
        vocabulary=VOCABULARY,
        settings=chosen,
        stopwords=frozenset({"of"}),
        counts=NO_COUNTS,
    )
    with open_dataset(path) as dataset:
        assert (dataset.settings, dataset.vocabulary, dataset.stopwords) == (chosen, VOCABULARY, {"of"})
        assert (dataset.counts, len(dataset.train), len(dataset.test)) == (NO_COUNTS, 3, 2)


def test_any_change_of_the_rows_changes_the_digest(tmp_path: Path) -> None:
    first = written(tmp_path / "a.h5", rows(3), rows(2))
    assert first != written(tmp_path / "b.h5", rows(2), rows(3))
    assert first != written(tmp_path / "c.h5", rows(3), rows(2, seed=9))


@pytest.mark.parametrize("packed", [True, False])
def test_the_same_rows_make_the_same_bytes_however_they_come(tmp_path: Path, packed: bool) -> None:
    # More rows than a chunk of any of the arrays holds: 2^20 labels of a byte each.
    train, test = rows(1_200_000), rows(20)
    for name, step in (("a.h5", len(train.labels)), ("b.h5", 99_999)):
        with DatasetWriter(tmp_path / name, Settings(row_length=4), packed=packed) as writer:
            for start in range(0, len(train.labels), step):
                writer.append("train", RowBlock(*(array[start : start + step] for array in train)))
            writer.append("test", test)
            writer.finish(vocabulary=VOCABULARY, stopwords=frozenset(), counts={})
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_chunks_hold_about_a_megabyte_of_whole_rows(tmp_path: Path) -> None:
    written(tmp_path / "a.h5", rows(300_000), rows(2))
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["train/tokens"].chunks == (2**20 // 8, 4)
        assert file["train/tokens"].maxshape == (None, 4)


def test_an_array_smaller_than_a_chunk_takes_no_megabyte(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "a.h5", Settings(row_length=4), packed=False) as writer:
        writer.append("train", rows(3))
        writer.finish(vocabulary=VOCABULARY, stopwords=frozenset(), counts={})
    assert (tmp_path / "a.h5").stat().st_size < 50_000


@pytest.mark.parametrize("packed", [True, False])
def test_hdf5_alone_reads_what_was_written(tmp_path: Path, packed: bool) -> None:
    train = rows(300_001)
    with DatasetWriter(tmp_path / "a.h5", Settings(row_length=4), packed=packed) as writer:
        writer.append("train", train)
        writer.finish(vocabulary=VOCABULARY, stopwords=frozenset(), counts={})
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["train/tokens"].compression == ("gzip" if packed else None)
        for name, expected in zip(("tokens", "lengths", "labels", "ratings"), train, strict=True):
            assert np.array_equal(file[f"train/{name}"][:], expected)


@pytest.mark.parametrize("packed", [True, False])
def test_blocks_are_all_rows_once_and_in_order(tmp_path: Path, packed: bool) -> None:
    train = rows(2_200_000)
    with DatasetWriter(tmp_path / "a.h5", Settings(row_length=4), packed=packed) as writer:
        writer.append("train", train)
        writer.finish(vocabulary=VOCABULARY, stopwords=frozenset(), counts={})
    with open_dataset(tmp_path / "a.h5") as dataset:
        blocks = list(dataset.train.blocks())
    assert len(blocks) == 3
    assert all(
        np.array_equal(np.concatenate(found), whole)
        for found, whole in zip(zip(*blocks, strict=True), train, strict=True)
    )


def test_an_id_gets_more_bits_only_where_the_vocabulary_needs_it() -> None:
    assert Settings(vocabulary_size=65_534).token_dtype == np.uint16
    assert Settings(vocabulary_size=65_535).token_dtype == np.uint32


def fail_while_writing(path: Path) -> None:
    with DatasetWriter(path, Settings(row_length=4)) as writer:
        writer.append("train", rows(5))
        raise ZeroDivisionError


def test_an_error_while_writing_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        fail_while_writing(tmp_path / "a.h5")
    assert list(tmp_path.iterdir()) == []


def test_an_error_while_writing_leaves_the_dataset_before(tmp_path: Path) -> None:
    digest = written(tmp_path / "a.h5", rows(3), rows(2))
    with pytest.raises(ZeroDivisionError):
        fail_while_writing(tmp_path / "a.h5")
    with open_dataset(tmp_path / "a.h5") as dataset:
        assert dataset.computed_digest() == digest


def broken(path: Path, kind: str) -> None:
    if kind == "text":
        path.write_text("no dataset")
    elif kind == "other":
        with h5py.File(path, "w") as file:
            file["x"] = [1]
    elif kind != "absent":
        written(path, rows(3), rows(2))
        if kind == "cut":
            path.write_bytes(path.read_bytes()[:-100])
            return
        with h5py.File(path, "r+") as file:
            damage(file, kind)


def damage(file: h5py.File, kind: str) -> None:
    if kind == "version":
        file.attrs["layout_version"] = 99
    elif kind == "missing array":
        del file["train/labels"]
    elif kind == "short array":
        file["train/labels"].resize(1, axis=0)
    elif kind == "settings":
        file.attrs["settings"] = "{"
    elif kind == "older":
        # The first layout had fewer settings; its version has to be found before they are read.
        file.attrs["layout_version"] = 1
        file.attrs["settings"] = '{"row_length": 4, "rating_range": [1, 5]}'
    elif kind == "senseless settings":
        file.attrs["settings"] = file.attrs["settings"].replace('"row_length": 4', '"row_length": 0')
    elif kind == "wordless":
        del file["vocabulary"]
        file.create_group("vocabulary")


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("absent", "no such file"),
        ("text", "is not an HDF5 file"),
        ("other", "not a Shoal dataset"),
        ("version", "has layout version 99, and this Shoal reads 2 and 3"),
        ("missing array", "is damaged"),
        ("short array", "the arrays of /train differ in length"),
        ("settings", "is damaged"),
        ("older", "has layout version 1, and this Shoal reads 2 and 3; make it again"),
        ("senseless settings", "is damaged: the row length is 0"),
        ("wordless", "is damaged"),
        ("cut", "is not an HDF5 file, or is damaged"),
    ],
)
def test_a_file_that_is_no_dataset_is_refused_with_its_name(tmp_path: Path, kind: str, sentence: str) -> None:
    path = tmp_path / "file.h5"
    broken(path, kind)
    with pytest.raises(DataError, match=sentence) as caught:
        open_dataset(path)
    assert "file.h5" in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"row_length": 0}, "the row length is 0"),
        ({"row_length": 70_000}, "the row length is 70000"),
        ({"vocabulary_size": 0}, "the vocabulary size is 0"),
        ({"rating_range": (5, 1)}, "the rating range is 5 to 1"),
        ({"positive_from": 1}, "leaves one class"),
        ({"positive_from": 6}, "leaves one class"),
        ({"test_share": 1.0}, "the test share is 1.0"),
        ({"test_share": -0.1}, "the test share is -0.1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        Settings(**wrong)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot write .*file/d\.h5"):
        written(tmp_path / "file" / "d.h5", rows(1), rows(1))


def test_a_vocabulary_past_64_kilobytes_is_kept(tmp_path: Path) -> None:
    words = [f"w{'x' * (number % 40)}{number}" for number in range(20_000)]
    with DatasetWriter(tmp_path / "d.h5", Settings(row_length=4, vocabulary_size=20_000)) as writer:
        writer.finish(vocabulary=words, stopwords=frozenset(words), counts={})
    with open_dataset(tmp_path / "d.h5") as dataset:
        assert dataset.vocabulary == words
        assert dataset.stopwords == frozenset(words)


def test_a_changed_chunk_changes_the_digest_and_a_broken_one_is_said(tmp_path: Path) -> None:
    path = tmp_path / "d.h5"
    digest = written(path, rows(3_000), rows(2_000))
    with h5py.File(path, "r+") as file:
        file["test/labels"][7] ^= 1
    with open_dataset(path) as dataset:
        assert dataset.digest == digest != dataset.computed_digest()
    with h5py.File(path, "r+") as file:
        stored = file["train/tokens"].id.read_direct_chunk((0, 0))[1]
        file["train/tokens"].id.write_direct_chunk((0, 0), b"x" * len(stored))
    with (
        open_dataset(path) as dataset,
        pytest.raises(DataError, match=r"d\.h5 is damaged: /train/tokens cannot be read"),
    ):
        dataset.computed_digest()


def test_twin_writers_of_one_file_do_not_meet(tmp_path: Path) -> None:
    with ExitStack() as stack:
        twins = [
            stack.enter_context(DatasetWriter(tmp_path / "d.h5", Settings(row_length=4), packed=packed))
            for packed in (True, False)
        ]
        for count in (40, 2):
            for twin in twins:
                twin.append("train", rows(count))
        digests = {twin.finish(vocabulary=VOCABULARY, stopwords=frozenset(), counts={}) for twin in twins}
    assert [path.name for path in tmp_path.iterdir()] == ["d.h5"]
    with open_dataset(tmp_path / "d.h5") as dataset:
        assert {dataset.computed_digest()} == digests


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    # In a process of its own: the peak of this one is that of all tests before.
    code = """
import resource, sys
from pathlib import Path
import numpy as np
from corpus.dataset import DatasetWriter, RowBlock
from corpus.dataset_settings import Settings
lengths = np.full(50_000, 100, np.uint16)
tokens = np.random.default_rng(0).integers(1, 9_999, (50_000, 100)).astype(np.uint16)
block = RowBlock(tokens, lengths, (lengths % 2).astype(np.uint8), (lengths % 5).astype(np.uint8))
with DatasetWriter(Path(sys.argv[1]), Settings()) as writer:
    writer.append("train", block)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(10):
        writer.append("train", block)
    writer.finish(vocabulary=["a"], stopwords=frozenset(), counts={})
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / tokens.nbytes)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "d.h5")]
    grown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert float(grown) < 1.5
