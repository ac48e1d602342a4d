"""Layout version 3: ragged rows and named classes are written and read, and damaged ones are refused."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DataError
from corpus.dataset import DatasetWriter, RowBlock, open_dataset, write_dataset
from corpus.dataset_settings import Settings

RAGGED = Settings(ragged=True, vocabulary_size=9)
CLASSES = replace(RAGGED, labelled=True, classes=("Business", "Sci/Tech", "Sport"))
WORDS = ["good", "bad", "it's"]


def rows(lengths: list[int], classes: int = 2, seed: int = 0) -> RowBlock:
    random = np.random.default_rng(seed)
    tokens = random.integers(1, 5, sum(lengths)).astype(np.uint16)
    labels = random.integers(0, classes, len(lengths)).astype(np.uint8 if classes <= 256 else np.uint16)
    return RowBlock(tokens, np.array(lengths, np.int64), labels, random.integers(1, 6, len(lengths), np.uint8))


def write(path: Path, blocks: list[RowBlock], kind: Settings = RAGGED, *, packed: bool = True) -> str:
    with DatasetWriter(path, kind, packed=packed) as writer:
        for block in blocks:
            writer.append("train", block)
        writer.append("test", rows([3, 1]))
        return writer.finish(vocabulary=WORDS, stopwords=frozenset(), counts={})


def parts(whole: RowBlock, cuts: list[int]) -> list[RowBlock]:
    count = len(whole.labels)
    return [whole.part(start, end) for start, end in pairwise([0, *sorted(min(cut, count) for cut in cuts), count])]


def joined(blocks: list[RowBlock]) -> RowBlock:
    return RowBlock(*map(np.concatenate, zip(*blocks, strict=True)))


def assert_same(one: RowBlock, other: RowBlock) -> None:
    for mine, theirs in zip(one, other, strict=True):
        assert mine.dtype == theirs.dtype
        assert np.array_equal(mine, theirs)


LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=40)


@settings(max_examples=30)
@given(LENGTHS, st.lists(st.integers(0, 40), max_size=4), st.booleans(), st.data())
def test_any_rows_come_back_however_they_were_cut(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], cuts: list[int], packed: bool, data: st.DataObject
) -> None:
    folder, whole = tmp_path_factory.mktemp("ragged"), rows(lengths)
    digest = write(folder / "whole.h5", [whole], packed=packed)
    assert write(folder / "cut.h5", parts(whole, cuts), packed=packed) == digest
    assert (folder / "whole.h5").read_bytes() == (folder / "cut.h5").read_bytes()
    with open_dataset(folder / "cut.h5") as dataset:
        assert dataset.computed_digest() == dataset.digest == digest
        assert dataset.settings == RAGGED
        assert_same(joined(list(dataset.train.blocks())), whole)
        start = data.draw(st.integers(0, len(lengths) + 2))
        end = data.draw(st.integers(0, len(lengths) + 2))
        assert_same(dataset.train.rows(start, end), whole.part(start, end))


def test_parts_one_after_the_other_are_the_whole(tmp_path: Path) -> None:
    whole = rows([2, 1, 5, 3, 3, 1, 4])
    digest = write(tmp_path / "whole.h5", [whole])
    with DatasetWriter(tmp_path / "merged.h5", RAGGED) as writer:
        for number, part in enumerate(parts(whole, [2, 2, 5])):  # one of them is empty
            with DatasetWriter(tmp_path / f"{number}.h5", RAGGED, packed=False) as part_writer:
                part_writer.append("train", part)
                part_writer.finish(vocabulary=WORDS, stopwords=frozenset(), counts={})
            with open_dataset(tmp_path / f"{number}.h5") as written:
                for block in written.train.blocks():
                    writer.append("train", block)
        writer.append("test", rows([3, 1]))
        assert writer.finish(vocabulary=WORDS, stopwords=frozenset(), counts={}) == digest
    assert (tmp_path / "whole.h5").read_bytes() == (tmp_path / "merged.h5").read_bytes()


@pytest.mark.parametrize("packed", [True, False])
def test_the_same_rows_make_the_same_bytes_however_many_chunks_they_fill(tmp_path: Path, packed: bool) -> None:
    lengths = np.random.default_rng(0).integers(1, 12, 300_000).tolist()
    lengths[7] = 4_000_000  # tokens of several chunks and of a block
    whole = rows(lengths)
    write(tmp_path / "a.h5", [whole], packed=packed)
    write(tmp_path / "b.h5", parts(whole, list(range(0, 300_000, 33_333))), packed=packed)
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["train/tokens"].chunks == (1 << 19,)
        assert file["train/ends"].chunks == (1 << 17,)
        assert file["train/ends"][:].tolist() == list(accumulate(lengths))
    with open_dataset(tmp_path / "a.h5") as dataset:
        blocks = list(dataset.train.blocks())
    assert len(blocks) > 1
    assert_same(joined(blocks), whole)


def test_fixed_rows_keep_their_bytes(tmp_path: Path) -> None:
    tokens = np.array([[2, 3, 0, 0], [4, 1, 3, 3]], np.uint16)
    block = RowBlock(tokens, np.array([2, 4], np.uint16), np.array([1, 0], np.uint8), np.array([5, 1], np.uint8))
    path = tmp_path / "d.h5"
    digest = write_dataset(path, train=block, test=block, vocabulary=WORDS, settings=Settings(row_length=4))
    assert digest == "10ff36b2668b188f1da42a07d4229a35"
    with h5py.File(path) as file:
        assert file.attrs["layout_version"] == 2
        assert file.attrs["settings"] == (
            '{"row_length": 4, "vocabulary_size": 10000, "rating_steps": 1, "rating_range": [1, 5], '
            '"rating_fraction": false, "positive_from": 4, "labelled": false, "positive_label": null, '
            '"test_share": 0.1, "test_input": false, "stopwords": "nltk"}'
        )
        assert sorted(file["train"]) == ["labels", "lengths", "ratings", "tokens"]


def test_names_of_classes_are_in_the_settings_and_many_of_them_have_wider_labels(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "few.h5", CLASSES) as writer:
        writer.append("train", rows([2, 2, 2, 2], classes=3))
        writer.finish(vocabulary=WORDS, stopwords=frozenset(), counts={})
    with open_dataset(tmp_path / "few.h5") as dataset:
        assert dataset.settings.classes == CLASSES.classes
        assert dataset.train.arrays["labels"].dtype == np.uint8
    many = replace(CLASSES, classes=tuple(f"class {number}" for number in range(65_536)))
    whole = rows([1] * 3_000, classes=65_536)
    with DatasetWriter(tmp_path / "many.h5", many) as writer:
        writer.append("train", whole)
        writer.finish(vocabulary=WORDS, stopwords=frozenset(), counts={})
    with open_dataset(tmp_path / "many.h5") as dataset:
        assert dataset.settings == many
        assert_same(dataset.train.rows(0, 3_000), whole)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"row_length": 50}, "the row length is 50, but ragged rows are whole texts; leave it out"),
        ({"words": "letter"}, "the rule of words is 'letter', but must be one of letters, tokens"),
        ({"classes": ("a", "b", "c")}, "there are 3 classes, so the input needs labels"),
        ({"labelled": True, "positive_label": "a", "classes": ("a", "b", "c")}, "of which none is the positive one"),
        ({"labelled": True, "ragged": False, "classes": ("a", "b", "c")}, "only ragged rows may have more than two"),
        ({"labelled": True, "classes": ("a", "b")}, "there are names of 2 classes, but must be of 3 to 65,536"),
        ({"labelled": True, "classes": tuple(map(str, range(65_537)))}, "there are names of 65,537 classes"),
        ({"labelled": True, "classes": ("a", "b", "")}, "the name of a class is empty"),
        ({"labelled": True, "classes": ("a", "b", "\x1b[2J")}, "has a letter that does not print"),
        ({"labelled": True, "classes": ("a", "b", "a")}, "two classes have the same name"),
    ],
)
def test_settings_of_ragged_rows_that_make_no_sense_are_refused(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        Settings(**{"ragged": True, **wrong})


def ends(change: Callable[[np.ndarray], None], name: str = "train/ends") -> Callable[[h5py.File], None]:
    def put(file: h5py.File) -> None:
        values = file[name][:]
        change(values)
        file[name][:] = values

    return put


def swap(values: np.ndarray) -> None:
    values[[3, 4]] = values[[4, 3]]


def wrap(values: np.ndarray) -> None:
    values[3:5] = 2**63 - 1, -(2**63)


def more_tokens(file: h5py.File) -> None:
    tokens = np.append(file["train/tokens"][:], np.uint16(1))
    del file["train/tokens"]
    file.create_dataset("train/tokens", data=tokens, chunks=tokens.shape)


def one_long_row(file: h5py.File) -> None:
    """A row of 5 million zeros, which take a few kilobytes."""
    last = file["train/ends"][-1]
    for name, values in (
        ("tokens", np.append(file["train/tokens"][:], np.zeros(5_000_000, np.uint16))),
        ("ends", np.append(file["train/ends"][:], last + 5_000_000)),
        *((name, np.append(file[f"train/{name}"][:], np.uint8(1))) for name in ("labels", "ratings")),
    ):
        del file[f"train/{name}"]
        file.create_dataset(
            f"train/{name}", data=values, chunks=(min(1 << 19, len(values)),), shuffle=True, compression="gzip"
        )


ROW_OF_NONE = "/train/ends has a row of no tokens, or of more than 4,194,304"
OTHER_END = "/train/ends does not end with the 20 tokens"
HARM: dict[str, tuple[Callable[[h5py.File], None], str]] = {
    "a row of none": (ends(lambda values: values.__setitem__(3, values[2])), ROW_OF_NONE),
    "a first row of none": (ends(lambda values: values.__setitem__(0, 0)), ROW_OF_NONE),
    "ends that fall": (ends(swap), ROW_OF_NONE),
    "a negative end": (ends(lambda values: values.__setitem__(0, -2)), OTHER_END),
    "an end behind the tokens": (ends(lambda values: values.__setitem__(4, 2**62)), OTHER_END),
    "lengths that overflow": (ends(wrap), OTHER_END),
    "a last end too early": (ends(lambda values: values.__setitem__(-1, 19)), OTHER_END),
    "tokens of no row": (more_tokens, "/train/ends does not end with the 21 tokens"),
    "a row longer than any text": (one_long_row, ROW_OF_NONE),
}


@pytest.mark.parametrize("kind", HARM)
def test_damaged_ends_are_one_sentence_when_rows_are_read(tmp_path: Path, kind: str) -> None:
    path, (harm, sentence) = tmp_path / "d.h5", HARM[kind]
    write(path, [rows([2] * 10)])
    with h5py.File(path, "r+") as file:
        harm(file)
    with open_dataset(path) as dataset:
        for read in (
            lambda: list(dataset.train.blocks()),
            lambda: dataset.train.rows(0, len(dataset.train)),
            lambda: [dataset.train.rows(row, row + 1) for row in range(len(dataset.train))],
        ):
            with pytest.raises(DataError, match=sentence) as caught:
                read()
            assert str(caught.value).startswith(f"{path} is damaged: ")
            assert str(caught.value).endswith("; make it again by `shoal preprocess`")


END = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 25)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 9), END), min_size=1, max_size=3), st.booleans())
def test_whatever_ends_claim_rows_are_refused_or_whole(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]], packed: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "ends.h5"
    write(path, [rows([2] * 10)], packed=packed)
    with h5py.File(path, "r+") as file:
        for row, end in changes:
            file["train/ends"][row] = end
    with open_dataset(path) as dataset:
        try:
            found = joined(list(dataset.train.blocks()))
        except DataError:
            return
    assert (len(found.tokens), len(found.lengths), int(found.lengths.sum())) == (20, 10, 20)
    assert int(found.lengths.min()) >= 1


def changed(**changes: Any) -> Callable[[h5py.File], None]:
    return lambda file: file.attrs.__setitem__(
        "settings", json.dumps({**json.loads(file.attrs["settings"]), **changes})
    )


def without_rows(file: h5py.File) -> None:
    for name in ("ends", "labels", "ratings"):
        dtype = file[f"train/{name}"].dtype
        del file[f"train/{name}"]
        file.create_dataset(f"train/{name}", (0,), dtype, chunks=(1,), maxshape=(None,))


def as_fixed(file: h5py.File) -> None:
    file.attrs["layout_version"] = 2


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (as_fixed, "its settings are those of layout version 3, not 2"),
        (changed(ragged=False), "its settings are those of layout version 2, not 3"),
        (changed(words="runes"), "the rule of words is 'runes'"),
        (changed(classes=["a", "b", 3]), "classes is not of type"),
        (changed(classes=["a", "b", "c\n"], labelled=True), "has a letter that does not print"),
        (lambda file: file["train/labels"].resize(9, axis=0), "the arrays of /train differ in length"),
        (lambda file: file["train/tokens"].resize(9, axis=0), "/train has 10 rows of 9 tokens"),
        (lambda file: file["train/tokens"].resize(10**9, axis=0), "but not all of them are stored"),
        (without_rows, "/train has 0 rows of 20 tokens"),
    ],
)
def test_what_a_file_of_ragged_rows_cannot_be_is_found_when_it_is_opened(
    tmp_path: Path, harm: Callable[[h5py.File], None], sentence: str
) -> None:
    path = tmp_path / "d.h5"
    write(path, [rows([2] * 10)])
    with h5py.File(path, "r+") as file:
        harm(file)
    with pytest.raises(DataError, match=sentence) as caught:
        open_dataset(path)
    assert str(caught.value).startswith(f"{path} is damaged: ")


def test_words_of_the_rule_tokens_may_have_letters_that_do_not_print(tmp_path: Path) -> None:
    words = ["4.5", "(", "caf\u00e9", "a\u00a0b", "\x1b[2j", "\u2028"]
    for rule, is_refused in (("tokens", False), ("letters", True)):
        kind = replace(RAGGED, words=rule)
        write_dataset(tmp_path / "d.h5", train=rows([3]), test=rows([1]), vocabulary=words, settings=kind)
        if is_refused:
            with pytest.raises(DataError, match="an entry that is not a word"):
                open_dataset(tmp_path / "d.h5")
        else:
            with open_dataset(tmp_path / "d.h5") as dataset:
                assert dataset.vocabulary == words


@pytest.mark.slow
def test_memory_does_not_grow_with_ragged_rows(tmp_path: Path) -> None:
    # In a process of its own: the peak of this one is that of all tests before.
    code = """
import resource, sys
from pathlib import Path
import numpy as np
from corpus.dataset import DatasetWriter, RowBlock, open_dataset
from corpus.dataset_settings import Settings
lengths = np.random.default_rng(0).integers(1, 200, 50_000)
tokens = np.random.default_rng(0).integers(1, 9_999, lengths.sum()).astype(np.uint16)
ones = np.ones(50_000, np.uint8)
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def write(blocks):
    with DatasetWriter(Path(sys.argv[1]), Settings(ragged=True)) as writer:
        for _ in range(blocks):
            writer.append("train", RowBlock(tokens, lengths, ones, ones))
        writer.finish(vocabulary=["a"], stopwords=frozenset(), counts={})
    with open_dataset(sys.argv[1]) as dataset:
        dataset.computed_digest()
write(2)
before = peak()
write(12)
print((peak() - before) * 1024 / tokens.nbytes)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "d.h5")]
    grown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert float(grown) < 1.5
