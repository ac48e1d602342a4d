"""Datasets with fixed rows and with ragged rows (layout versions 2 and 3) are read as they were written."""

import fcntl
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

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
FIXED = Settings(row_length=4)
RAGGED = Settings(ragged=True, vocabulary_size=9)
BOTH = pytest.mark.parametrize("kind", [FIXED, RAGGED], ids=["fixed", "ragged"])


def rows(lengths: Sequence[int] | np.ndarray, kind: Settings = FIXED, classes: int = 2, seed: int = 0) -> RowBlock:
    random, lengths = np.random.default_rng(seed), np.asarray(lengths, np.int64)
    count = len(lengths)
    if kind.ragged:
        tokens = random.integers(1, 5, lengths.sum()).astype(np.uint16)
    else:
        tokens = random.integers(1, 5, (count, 4)).astype(np.uint16) * (np.arange(4) < lengths[:, None])
        tokens, lengths = tokens.astype(np.uint16), lengths.astype(np.uint16)
    labels = random.integers(0, classes, count).astype(np.uint8 if classes <= 256 else np.uint16)
    return RowBlock(tokens, lengths, labels, random.integers(1, 6, count, np.uint8))


def some(count: int, kind: Settings = FIXED) -> RowBlock:
    return rows(np.random.default_rng(count).integers(1, 5, count), kind)


def write(path: Path, blocks: list[RowBlock], kind: Settings = FIXED, *, packed: bool = True, **more: Any) -> str:
    with DatasetWriter(path, kind, packed=packed) as writer:
        for block in blocks:
            writer.append("train", block)
        writer.append("test", rows([3, 1], kind))
        return writer.finish(**{"vocabulary": VOCABULARY, "stopwords": frozenset(), "counts": {}, **more})


def parts(whole: RowBlock, cuts: list[int]) -> list[RowBlock]:
    count = len(whole.labels)
    return [whole.part(start, end) for start, end in pairwise([0, *sorted(min(cut, count) for cut in cuts), count])]


def joined(blocks: list[RowBlock]) -> RowBlock:
    return RowBlock(*map(np.concatenate, zip(*blocks, strict=True)))


def assert_same(one: RowBlock, other: RowBlock) -> None:
    for mine, theirs in zip(one, other, strict=True):
        assert mine.dtype == theirs.dtype
        assert np.array_equal(mine, theirs)


@BOTH
@settings(max_examples=20, derandomize=True)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=40),
    st.lists(st.integers(0, 40), max_size=4),
    st.booleans(),
    st.lists(st.integers(0, 42), min_size=2, max_size=2),
)
def test_any_rows_are_read_as_written_for_any_blocks(tmp_path, kind, lengths, cuts, packed, bounds) -> None:
    whole, (start, end) = rows(lengths, kind), bounds
    digest = write(tmp_path / "whole.h5", [whole], kind, packed=packed)
    assert write(tmp_path / "other.h5", [whole], kind, packed=not packed) == digest
    assert write(tmp_path / "cut.h5", parts(whole, cuts), kind, packed=packed) == digest
    assert (tmp_path / "whole.h5").read_bytes() == (tmp_path / "cut.h5").read_bytes()
    with open_dataset(tmp_path / "cut.h5") as dataset:
        assert dataset.computed_digest() == dataset.digest == digest
        assert (dataset.settings, len(dataset.train), len(dataset.test)) == (kind, len(lengths), 2)
        assert_same(joined(list(dataset.train.blocks())), whole)
        assert_same(dataset.train.rows(start, end), whole.part(start, end))


def test_a_dataset_has_its_settings_and_metadata_even_above_64_kilobytes(tmp_path: Path) -> None:
    chosen = replace(FIXED, positive_from=3, rating_range=(1, 10), stopwords="none", vocabulary_size=20_000)
    counts = final_counts({}, settings=Settings(), positive_from=4, frequent_words=[("good", 7)])
    words = [f"w{'x' * (number % 40)}{number}" for number in range(20_000)]
    write(tmp_path / "d.h5", [some(3)], chosen, vocabulary=words, stopwords=frozenset(words), counts=counts)
    with open_dataset(tmp_path / "d.h5") as dataset:
        assert (dataset.settings, dataset.vocabulary, dataset.stopwords) == (chosen, words, frozenset(words))
        assert (dataset.counts, len(dataset.train), len(dataset.test)) == (counts, 3, 2)


def test_a_dataset_is_opened_without_a_lock(tmp_path: Path) -> None:
    write_dataset(tmp_path / "d.h5", train=some(3), test=some(2), vocabulary=VOCABULARY, settings=FIXED)
    with (tmp_path / "d.h5").open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with open_dataset(tmp_path / "d.h5") as dataset:
            assert dataset.vocabulary == VOCABULARY


# More rows than the largest chunk of any array, which has 2^20 labels of one byte, or 2^19 tokens.
@pytest.mark.parametrize(("kind", "packed"), [(FIXED, True), (RAGGED, True), (RAGGED, False)])
def test_rows_of_many_chunks_make_the_same_bytes_in_any_blocks(tmp_path: Path, kind: Settings, packed: bool) -> None:
    lengths = np.random.default_rng(0).integers(1, 5, 1_100_000)
    lengths[7] = 4_000_000 if kind.ragged else 4  # tokens of several chunks in one block
    whole = rows(lengths, kind)
    write(tmp_path / "a.h5", [whole], kind, packed=packed)
    write(tmp_path / "b.h5", parts(whole, list(range(0, 1_100_000, 133_333))), kind, packed=packed)
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()
    with h5py.File(tmp_path / "a.h5") as file:  # h5py can read it without Shoal
        assert file["train/tokens"].compression == ("gzip" if packed else None)
        assert np.array_equal(file["train/tokens"][:], whole.tokens)
        assert np.array_equal(file["train/labels"][:], whole.labels)
        if kind.ragged:
            assert (file["train/tokens"].chunks, file["train/ends"].chunks) == ((1 << 19,), (1 << 17,))
            assert file["train/ends"][-1] == sum(lengths)
            assert file["train/ends"][:9].tolist() == list(accumulate(lengths[:9].tolist()))
        else:
            assert (file["train/tokens"].chunks, file["train/tokens"].maxshape) == ((2**20 // 8, 4), (None, 4))
    with open_dataset(tmp_path / "a.h5") as dataset:
        blocks = list(dataset.train.blocks())
    assert len(blocks) > 1
    assert_same(joined(blocks), whole)


def test_an_array_smaller_than_a_chunk_takes_less_than_a_megabyte(tmp_path: Path) -> None:
    write(tmp_path / "a.h5", [some(3)], packed=False)
    assert (tmp_path / "a.h5").stat().st_size < 50_000


def test_ids_and_labels_get_more_bits_only_if_needed() -> None:
    for classes, count, dtype in ((0, 2, np.uint8), (256, 256, np.uint8), (257, 257, np.uint16)):
        kind = replace(RAGGED, labelled=True, classes=tuple(map(str, range(classes))))
        assert (kind.class_count, kind.label_dtype) == (count, dtype)
    assert Settings(vocabulary_size=65_534).token_dtype == np.uint16
    assert Settings(vocabulary_size=65_535).token_dtype == np.uint32


@pytest.mark.parametrize("before", [False, True])
def test_an_error_while_writing_leaves_the_earlier_dataset_or_nothing(tmp_path: Path, before: bool) -> None:
    digest = write(tmp_path / "a.h5", [some(3)]) if before else None
    with pytest.raises(AttributeError), DatasetWriter(tmp_path / "a.h5", FIXED) as writer:
        [writer.append("train", block) for block in (some(5), None)]
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"] * before
    if before:
        with open_dataset(tmp_path / "a.h5") as dataset:
            assert dataset.computed_digest() == digest


def test_a_failure_to_create_a_folder_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot write .*file/d\.h5"):
        write(tmp_path / "file" / "d.h5", [])


def test_a_dataset_is_read_from_a_file_object(tmp_path: Path) -> None:
    digest = write(tmp_path / "d.h5", [some(3)])
    with open_dataset("s3://data/d.h5", BytesIO((tmp_path / "d.h5").read_bytes())) as dataset:
        assert dataset.computed_digest() == digest


@pytest.mark.parametrize(("rule", "is_refused"), [("tokens", False), ("letters", True)])
def test_tokens_may_have_unprintable_characters(tmp_path: Path, rule: str, is_refused: bool) -> None:
    words = ["4.5", "(", "caf\u00e9", "a\u00a0b", "\x1b[2j", "\u2028"]
    write(tmp_path / "d.h5", [], replace(RAGGED, words=rule), vocabulary=words)
    if is_refused:
        with pytest.raises(DataError, match="not a word"):
            open_dataset(tmp_path / "d.h5")
    else:
        with open_dataset(tmp_path / "d.h5") as dataset:
            assert dataset.vocabulary == words


def test_a_changed_chunk_changes_the_digest_and_a_broken_one_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "d.h5"
    digest = write(path, [some(3_000)])
    with h5py.File(path, "r+") as file:
        file["train/labels"][7] ^= 1
    with open_dataset(path) as dataset:
        assert dataset.digest == digest != dataset.computed_digest()
    with h5py.File(path, "r+") as file:
        stored = file["train/tokens"].id.read_direct_chunk((0, 0))[1]
        file["train/tokens"].id.write_direct_chunk((0, 0), b"x" * len(stored))
    with open_dataset(path) as dataset, pytest.raises(DataError, match=r"d\.h5 is damaged: /train/tokens"):
        dataset.computed_digest()


def test_fixed_rows_keep_their_bytes(tmp_path: Path) -> None:
    tokens = np.array([[2, 3, 0, 0], [4, 1, 3, 3]], np.uint16)
    block = RowBlock(tokens, np.array([2, 4], np.uint16), np.array([1, 0], np.uint8), np.array([5, 1], np.uint8))
    path = tmp_path / "d.h5"
    digest = write_dataset(path, train=block, test=block, vocabulary=VOCABULARY, settings=FIXED)
    assert digest == "10ff36b2668b188f1da42a07d4229a35"
    with h5py.File(path) as file:
        assert file.attrs["layout_version"] == 2
        assert file.attrs["settings"] == (
            '{"row_length": 4, "vocabulary_size": 10000, "rating_steps": 1, "rating_range": [1, 5], '
            '"rating_fraction": false, "positive_from": 4, "labelled": false, "positive_label": null, '
            '"test_share": 0.1, "test_input": false, "stopwords": "nltk"}'
        )
        assert sorted(file["train"]) == ["labels", "lengths", "ratings", "tokens"]


@pytest.mark.parametrize(("count", "dtype"), [(3, np.uint8), (65_536, np.uint16)])
def test_class_names_are_stored_and_many_classes_have_wider_labels(tmp_path: Path, count: int, dtype: type) -> None:
    kind = replace(RAGGED, labelled=True, classes=tuple(f"class/{number}" for number in range(count)))
    with pytest.raises(DataError, match="65,537 class names"):
        replace(kind, classes=tuple(map(str, range(65_537))))
    whole = rows([1] * 3_000, kind, classes=count)
    with DatasetWriter(tmp_path / "d.h5", kind) as writer:
        writer.append("train", whole)
        writer.finish(vocabulary=VOCABULARY, stopwords=frozenset(), counts={})
    with open_dataset(tmp_path / "d.h5") as dataset:
        assert dataset.settings == kind
        assert dataset.train.arrays["labels"].dtype == dtype
        assert_same(dataset.train.rows(0, 3_000), whole)


GROWTH = """
import resource, sys
from pathlib import Path
import numpy as np
from corpus.dataset import DatasetWriter, RowBlock, open_dataset
from corpus.dataset_settings import Settings
random, ragged = np.random.default_rng(0), bool(int(sys.argv[2]))
lengths = random.integers(1, 200, 30_000) if ragged else np.full(30_000, 100, np.uint16)
tokens = random.integers(1, 9_999, int(lengths.sum()) if ragged else (30_000, 100)).astype(np.uint16)
block = RowBlock(tokens, lengths, (np.arange(30_000) % 2).astype(np.uint8), (np.arange(30_000) % 5).astype(np.uint8))
def peak(blocks):
    with DatasetWriter(Path(sys.argv[1]), Settings(ragged=ragged)) as writer:
        for _ in range(blocks):
            writer.append("train", block)
        writer.finish(vocabulary=["a"], stopwords=frozenset(), counts={})
    with open_dataset(sys.argv[1]) as dataset:
        dataset.computed_digest()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak(2)
print((peak(5) - before) * 1024 / tokens.nbytes)
"""


@pytest.mark.parametrize("ragged", ["0", pytest.param("1", marks=pytest.mark.slow)])
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, ragged: str) -> None:
    # Run in a separate process, because the peak memory of this process includes all earlier tests.
    command = [sys.executable, "-c", GROWTH, str(tmp_path / "d.h5"), ragged]
    assert float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) < 1.5
