"""A file of fastText's program is read as it was written, or refused with a sentence."""

import struct
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import TrainingError
from trainer.classification.loading import load_model
from trainer.output.program_file import SOFTMAX, ProgramFile, read_program_file, write_program_file

ENTRIES = st.lists(st.binary(min_size=1, max_size=9).filter(lambda entry: b"\0" not in entry), max_size=5)


def matrix(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(rows).normal(size=(rows, columns)).astype(np.float32)


def content(**fields: object) -> ProgramFile:
    return replace(
        ProgramFile(
            words=[b"</s>", b"good"],
            labels=[b"__label__a", b"__label__b"],
            loss=SOFTMAX,
            ngrams=2,
            char_lengths=range(3, 5),
            vectors=matrix(9, 3),
            weights=matrix(2, 3),
        ),
        **fields,
    )


@given(words=ENTRIES, labels=ENTRIES.filter(len), ignored=ENTRIES, buckets=st.integers(1, 9), data=st.data())
def test_a_file_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    words: list[bytes],
    labels: list[bytes],
    ignored: list[bytes],
    buckets: int,
    data: st.DataObject,
) -> None:
    size, longest = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 6))
    written = content(
        words=words,
        labels=labels,
        ignored=ignored,
        loss=data.draw(st.sampled_from([2, SOFTMAX, 4])),
        ngrams=data.draw(st.integers(1, 5)),
        char_lengths=range(data.draw(st.integers(1, 6)), longest + 1),
        vectors=matrix(len(words) + buckets, size),
        weights=matrix(len(labels), size),
    )
    path = tmp_path_factory.mktemp("file") / "model.bin"
    write_program_file(path, written)
    found, expected = vars(read_program_file(path, "it")), vars(written)
    for name in ("vectors", "weights"):
        np.testing.assert_array_equal(found.pop(name), expected.pop(name))
    assert found == expected


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_program_file(tmp_path / "model.bin", content())
    return tmp_path / "model.bin"


HEAD, DICTIONARY = 8, 8 + 56
"""Where the arguments and the dictionary begin."""
ENTRY = DICTIONARY + 28
VECTORS = ENTRY + sum(len(entry) + 10 for entry in (b"</s>", b"good", b"__label__a", b"__label__b"))
WEIGHTS = VECTORS + 1 + 16 + 9 * 3 * 4


def put(form: str, place: int, *values: float) -> Callable[[bytes], bytes]:
    """A change: the values in place of those at a place."""

    def change(data: bytes) -> bytes:
        return data[:place] + struct.pack(form, *values) + data[place + struct.calcsize(form) :]

    return change


DAMAGE = {
    "nothing": (lambda data: data[:0], "it ends 8 bytes too early"),
    "another file": (put("<i", 0, 5), "it does not begin as one"),
    "an older version": (put("<i", 4, 11), r"^it is of version 11 of the format, and this Shoal reads version 12$"),
    "word vectors": (put("<i", HEAD + 28, 2), "^it has word vectors of the fastText program, and labels no texts$"),
    "hierarchical softmax": (put("<i", HEAD + 24, 1), r"^it was trained with hierarchical softmax \(-loss hs\), which"),
    "n-grams of no word": (put("<i", HEAD + 20, 0), "its n-grams have up to"),
    "n-grams of a thousand million words": (put("<i", HEAD + 20, 10**9), "up to 1,000,000,000 words or characters"),
    "long n-grams of characters": (put("<i", HEAD + 40, 1000), "up to 1,000 words or characters and 7 buckets"),
    "fewer than no buckets": (put("<i", HEAD + 32, -1), "and -1 buckets"),
    "no buckets": (put("<i", HEAD + 32, 0), "it has n-grams, and no buckets for them"),
    "other buckets": (put("<i", HEAD + 32, 8), "its matrices are not of the size"),
    "another size": (put("<i", HEAD, 4), "its matrices are not of the size"),
    "no labels": (put("<2i", DICTIONARY + 4, 4, 0), "its dictionary has 4 words and 0 labels in 4 entries"),
    "more labels than entries": (put("<i", DICTIONARY + 8, 3), "2 words and 3 labels in 4 entries"),
    "fewer than no words": (put("<i", DICTIONARY + 4, -1), "its dictionary has -1 words"),
    "a label among the words": (put("<2i", DICTIONARY + 4, 3, 1), "not of the size|not words and behind them labels"),
    "a word among the labels": (put("<b", VECTORS - 1, 0), "its dictionary is not words and behind them labels"),
    "two thousand million entries": (
        put("<3i", DICTIONARY, 2**31 - 1, 2**31 - 3, 2),
        "within its dictionary|too early",
    ),
    "pruned": (put("<q", DICTIONARY + 20, 5), "^it is quantised, which Shoal does not read; give the file that it was"),
    "quantised": (put("<b", VECTORS, 1), "^it is quantised, which Shoal does not read"),
    "a quantised second matrix": (put("<b", WEIGHTS, 1), "its second matrix is quantised, and the first is not"),
    "fewer than no rows": (put("<q", VECTORS + 1, -9), "a matrix of it has -9 rows of 3 numbers"),
    "rows of nothing": (put("<q", VECTORS + 9, 0), "a matrix of it has 9 rows of 0 numbers"),
    "rows without end": (put("<2q", VECTORS + 1, 2**40, 2**20), "it ends 4,611,686,018,427,387,"),
    "NaN": (put("<f", WEIGHTS + 17, float("nan")), "its matrices have infinite or NaN values"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_what_is_damaged_or_of_another_kind_is_one_sentence(path: Path, name: str) -> None:
    change, sentence = DAMAGE[name]
    path.write_bytes(change(path.read_bytes()))
    tracemalloc.start()
    with pytest.raises(TrainingError, match=sentence) as error:
        read_program_file(path, "it")
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert "\n" not in str(error.value)


def test_a_file_that_was_cut_anywhere_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(
            TrainingError, match=r"^it is not a model of the fastText program, or a damaged one: it ends"
        ):
            read_program_file(path, "it")


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ([b"__label__a", b"__label__a"], "has a label twice, so it is damaged"),
        ([b"__label__a", b"\xff"], "has a label that is not UTF-8"),
    ],
)
def test_labels_that_are_no_names_of_classes_are_refused(path: Path, labels: list[bytes], sentence: str) -> None:
    write_program_file(path, content(labels=labels))
    with pytest.raises(TrainingError, match=sentence):
        load_model(path)


def test_a_file_that_the_program_has_quantised_is_refused(tmp_path: Path) -> None:
    fasttext = pytest.importorskip("fasttext", reason="requirements-bench.txt is not installed")
    (tmp_path / "lines").write_text("__label__a good day\n__label__b bad day\n" * 300)
    program = fasttext.train_supervised(str(tmp_path / "lines"), dim=4, bucket=300, wordNgrams=2, thread=1, verbose=0)
    program.quantize()
    program.save_model(str(tmp_path / "model.ftz"))
    with pytest.raises(TrainingError, match="is quantised, which Shoal does not read; give the file that it was made"):
        load_model(tmp_path / "model.ftz")


def test_a_folder_in_the_place_of_a_file_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "model.bin").mkdir()
    with pytest.raises(TrainingError, match="there is no model at"):
        load_model(tmp_path / "model.bin")
