"""Opening a damaged dataset file fails with one message, and never uses more memory than in proportion to the file."""

import json
import tracemalloc
from collections.abc import Callable
from functools import partial
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any
from zlib import compress

import h5py
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DataError
from corpus.counts import final_counts
from corpus.dataset import DatasetWriter, RowBlock, Split, open_dataset
from corpus.dataset_settings import Settings

ARRAYS = RowBlock._fields
CASES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("damaged.yaml").read_text())
SETTINGS = Settings(row_length=4, vocabulary_size=9)
RAGGED = Settings(ragged=True, vocabulary_size=9)
COUNTS = final_counts({}, settings=SETTINGS, positive_from=4, frequent_words=[("good", 7)])
WORDS = ["good", "bad", "it's"]


def rows(count: int, ragged: bool = False) -> RowBlock:
    """Return `count` rows with two tokens each if they are ragged, otherwise four."""
    numbers = np.arange(count, dtype=np.uint8)
    tokens = np.ones(2 * count) if ragged else np.arange(4 * count).reshape(count, 4) % 4 + 1
    lengths = np.full(count, 2, np.int64) if ragged else np.full(count, 4, np.uint16)
    return RowBlock(tokens.astype(np.uint16), lengths, numbers % 2, numbers % 5 + 1)


def make(path: Path, *, packed: bool = True, ragged: bool = False) -> bytes:
    with DatasetWriter(path, RAGGED if ragged else SETTINGS, packed=packed) as writer:
        writer.append("train", rows(10 if ragged else 40, ragged))
        writer.append("test", rows(2 if ragged else 20, ragged))
        writer.finish(vocabulary=WORDS, stopwords=frozenset({"the"}), counts=COUNTS)
    return path.read_bytes()


def again(file: h5py.File, name: str, **how: Any) -> h5py.Dataset:
    """Replace an array, and return the new one. `how` has h5py's arguments for the new array."""
    del file[name]
    return file.create_dataset(name, **how)


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((40,), np.uint8)
    layout[:] = h5py.VirtualSource("other.h5", "secret", (40,))
    del file["train/labels"]
    file.create_virtual_dataset("train/labels", layout)


def type_as_array(file: h5py.File) -> None:
    del file["train/labels"]
    file["train/labels"] = np.dtype(np.uint8)


def one_long_word_many_times(file: h5py.File) -> None:
    """Write a vocabulary of 60,000 references to one string of 60 KB, which would become 3.6 GB of words."""
    array = again(file, "vocabulary", data=["w" * 60_000] + [""] * 59_999, dtype=h5py.string_dtype())
    place, name = array.id.get_offset(), file.filename
    file.close()
    with Path(name).open("r+b") as raw:
        raw.seek(place)
        entry = raw.read(16)
        raw.write(entry * 59_999)


def very_long_word(file: h5py.File) -> None:
    """Declare a length of 20 MB for the first word."""
    place, name = file["vocabulary"].id.get_offset(), file.filename
    file.close()
    with Path(name).open("r+b") as raw:
        raw.seek(place)
        raw.write(np.uint32(20_000_000).tobytes())


def one_long_row(file: h5py.File) -> None:
    """Write a row of 5 million zeros, which has only a few kilobytes when it is compressed."""
    for name, more in (
        ("tokens", np.zeros(5_000_000, np.uint16)),
        ("ends", file["train/ends"][-1:] + 5_000_000),
        *((name, np.ones(1, np.uint8)) for name in ("labels", "ratings")),
    ):
        data = np.append(file[f"train/{name}"][:], more)
        again(file, f"train/{name}", data=data, chunks=(min(1 << 19, len(data)),), shuffle=True, compression="gzip")


SPECIAL: dict[str, Callable[[h5py.File], None]] = {
    "virtual": virtual,
    "type as array": type_as_array,
    "one long word many times": one_long_word_many_times,
    "a very long word": very_long_word,
    "one long row": one_long_row,
}


def make_array(file: h5py.File, name: str, how: dict[str, Any]) -> None:
    """Create an array with the arguments `how` of h5py. Its data can be `kept`, or ones with a given shape."""
    how = dict(how)
    if how.get("dtype") == "text":
        how["dtype"] = h5py.string_dtype()
    if how.get("data") == "kept":
        how["data"] = file[name][:]
    elif how.get("data") == "empty":
        how["data"] = h5py.Empty(np.uint8)
    elif "ones" in how:
        how["data"] = np.ones(how.pop("ones"))
    if "external" in how:
        how["external"] = [(str(Path(file.filename).with_name("other.raw")), 0, how["external"])]
    for each in ("shape", "chunks", "maxshape"):
        if each in how:
            how[each] = tuple(how[each])
    again(file, name, **how)


def damage(file: h5py.File, case: dict[str, Any]) -> None:
    for name in case.get("without", []):
        (file.attrs if name in file.attrs else file).__delitem__(name)
    for name, value in case.get("attributes", {}).items():
        file.attrs[name] = value
    for name in ("settings", "counts"):
        if name in case:
            file.attrs[name] = json.dumps({**json.loads(file.attrs[name]), **case[name]})
    for name, how in case.get("arrays", {}).items():
        make_array(file, name, how)
    for name, length in case.get("lengths", {}).items():
        file[name].resize(length, axis=0)
    for place, end in case.get("ends", {}).items():
        file["train/ends"][place] = end
    for name, target in case.get("links", {}).items():
        del file[name]
        file[name] = h5py.SoftLink(target) if isinstance(target, str) else h5py.ExternalLink(*target)
    if "special" in case:
        SPECIAL[case["special"]](file)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[bool, bool], bytes]:
    """Return the bytes of dataset files, by whether they are compressed, and whether their rows are ragged."""
    path = tmp_path_factory.mktemp("written") / "d.h5"
    kinds = product((True, False), repeat=2)
    return {(packed, ragged): make(path, packed=packed, ragged=ragged) for packed, ragged in kinds}


def reads(path: Path, refusing: bool) -> list[Callable[[], object]]:
    """Return functions that read a file in different ways, or if opening is refused, the function that opens it."""

    def opened(read: Callable[[Split], object]) -> object:
        with open_dataset(path) as dataset:
            return read(dataset.train)

    ways: list[Callable[[Split], object]] = [
        lambda split: list(split.blocks()),
        lambda split: split.rows(0, len(split)),
        lambda split: [split.rows(row, row + 1) for row in range(len(split))],
    ]
    return [lambda: open_dataset(path)] if refusing else [partial(opened, way) for way in ways]


@pytest.mark.parametrize("case", CASES, ids=itemgetter("case"))
def test_an_invalid_dataset_is_refused(tmp_path: Path, written, case: dict[str, Any], messages) -> None:
    path = tmp_path / "d.h5"
    path.write_bytes(written[True, case.get("ragged", False)])
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["labels"] = other["secret"] = np.ones(40, np.uint8)
    (tmp_path / "other.raw").write_bytes(bytes(40))
    with h5py.File(path, "r+") as file:
        damage(file, case)
    sentences = set()
    for read in reads(path, "read" not in case):
        tracemalloc.start()
        try:
            with pytest.raises(DataError) as refused:
                read()
            sentences.add(str(refused.value))
            assert "read" in case or tracemalloc.get_traced_memory()[1] < 4 << 20
        finally:
            tracemalloc.stop()
    (sentence,) = sentences
    messages.check(sentence)


@pytest.mark.parametrize("stored", [16, 200])
def test_a_chunk_that_would_exceed_its_size_is_not_unpacked(tmp_path: Path, stored: int, messages) -> None:
    path = tmp_path / "d.h5"
    make(path, packed=True)
    bomb = compress(bytes(1 << 26))[: stored << 10]
    with h5py.File(path, "r+") as file:
        file["train/tokens"].id.write_direct_chunk((0, 0), bomb)
    tracemalloc.start()
    with open_dataset(path) as dataset, messages.raises(DataError):
        dataset.computed_digest()
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


def test_part_files_and_empty_splits_are_valid(tmp_path: Path) -> None:
    for packed in (True, False):
        with DatasetWriter(tmp_path / "part.h5", SETTINGS, packed=packed) as writer:
            writer.append("test", rows(3))
            writer.finish(vocabulary=[], stopwords=frozenset(), counts={})
        with open_dataset(tmp_path / "part.h5") as dataset:
            assert (len(dataset.train), len(dataset.test), dataset.vocabulary, dataset.counts) == (0, 3, [], {})


END = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 25)


@settings(max_examples=25, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 9), END), min_size=1, max_size=3), st.booleans())
def test_any_ends_are_refused_or_give_complete_rows(tmp_path, written, changes, packed) -> None:
    (tmp_path / "ends.h5").write_bytes(written[packed, True])
    with h5py.File(tmp_path / "ends.h5", "r+") as file:
        for row, end in changes:
            file["train/ends"][row] = end
    with open_dataset(tmp_path / "ends.h5") as dataset:
        try:
            found = RowBlock(*map(np.concatenate, zip(*dataset.train.blocks(), strict=True)))
        except DataError:
            return
    assert (len(found.tokens), len(found.lengths), int(found.lengths.sum())) == (20, 10, 20)
    assert int(found.lengths.min()) >= 1
