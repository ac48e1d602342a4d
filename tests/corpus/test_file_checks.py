"""A dataset file is checked when it is opened: one sentence, and no more memory than the file has bytes."""

import json
import tracemalloc
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any
from zlib import compress

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DataError
from corpus.counts import final_counts
from corpus.dataset import Dataset, DatasetWriter, RowBlock, open_dataset
from corpus.dataset_settings import Settings

ARRAYS = RowBlock._fields
SETTINGS = Settings(row_length=4, vocabulary_size=9)
WORDS = ["good", "bad", "it's"]
COUNTS = final_counts({}, settings=SETTINGS, positive_from=4, frequent_words=[("good", 7)])


def rows(count: int) -> RowBlock:
    tokens = (np.arange(4 * count).reshape(count, 4) % 4 + 1).astype(np.uint16)
    numbers = np.arange(count, dtype=np.uint8)
    return RowBlock(tokens, np.full(count, 4, np.uint16), numbers % 2, numbers % 5 + 1)


def make(path: Path, *, packed: bool) -> bytes:
    with DatasetWriter(path, SETTINGS, packed=packed) as writer:
        writer.append("train", rows(40))
        writer.append("test", rows(20))
        writer.finish(vocabulary=WORDS, stopwords=frozenset({"the"}), counts=COUNTS)
    return path.read_bytes()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, bytes]:
    """The bytes of a dataset, packed and not."""
    folder = tmp_path_factory.mktemp("written")
    return {packed: make(folder / f"{packed}.h5", packed=packed) for packed in (True, False)}


def content(dataset: Dataset) -> list[Any]:
    return [array[:].tolist() for split in (dataset.train, dataset.test) for array in split.arrays.values()]


def again(file: h5py.File, name: str, **how: Any) -> h5py.Dataset:
    """Create an array anew, in place of the one that there is."""
    del file[name]
    return file.create_dataset(name, **how)


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((40,), np.uint8)
    layout[:] = h5py.VirtualSource("other.h5", "secret", (40,))
    del file["train/labels"]
    file.create_virtual_dataset("train/labels", layout)


def link(made: Any, name: str = "train/labels") -> Callable[[h5py.File], None]:
    def put(file: h5py.File) -> None:
        del file[name]
        file[name] = made

    return put


def attribute(name: str, value: Any) -> Callable[[h5py.File], None]:
    return lambda file: file.attrs.__setitem__(name, value)


def changed(name: str, **changes: Any) -> Callable[[h5py.File], None]:
    return lambda file: file.attrs.__setitem__(name, json.dumps({**json.loads(file.attrs[name]), **changes}))


def longer(*names: str) -> Callable[[h5py.File], None]:
    return lambda file: [file[f"train/{name}"].resize(200_000_000, axis=0) for name in names] and None


def labels(**how: Any) -> Callable[[h5py.File], None]:
    return lambda file: again(file, "train/labels", **{"data": rows(40).labels, **how}) and None


def tokens(**how: Any) -> Callable[[h5py.File], None]:
    return lambda file: again(file, "train/tokens", **{"chunks": (40, 4), "dtype": np.uint16, **how}) and None


def words(values: Any, dtype: Any = h5py.string_dtype(), **how: Any) -> Callable[[h5py.File], None]:  # noqa: B008
    return lambda file: again(file, "vocabulary", data=values, dtype=dtype, **how) and None


def elsewhere(file: h5py.File) -> str:
    return str(Path(file.filename).with_name("other.raw"))


def external_labels(file: h5py.File) -> None:
    labels(external=[(elsewhere(file), 0, 40)])(file)


def external_words(file: h5py.File) -> None:
    again(file, "vocabulary", shape=(1,), dtype=h5py.string_dtype(), external=[(elsewhere(file), 0, 16)])


def unstored_words(file: h5py.File) -> None:
    again(file, "vocabulary", shape=(9,), dtype=h5py.string_dtype())


def one_long_word_many_times(file: h5py.File) -> None:
    """60,000 entries for one string of 60 KB: 3.6 GB of words."""
    changed("settings", vocabulary_size=60_000)(file)
    array = again(file, "vocabulary", data=["w" * 60_000] + [""] * 59_999, dtype=h5py.string_dtype())
    place, name = array.id.get_offset(), file.filename
    file.close()
    with Path(name).open("r+b") as raw:
        raw.seek(place)
        entry = raw.read(16)
        raw.write(entry * 59_999)


NO_DIGEST = "its digest is not 32 hexadecimal digits"
NOT_WORDS = "/vocabulary is not a list of words"
NO_WORD = "/vocabulary has an entry that is not a word"
COUNTS_FORM = "its counts are not in the form"
DECLARED = "declares 200,000,000 rows, but not all of them are stored"
HUGE_CHUNK = {"shape": (40, 4), "maxshape": (None, 4), "chunks": (1 << 28, 4)}


def without(name: str) -> Callable[[h5py.File], None]:
    return lambda file: (file.attrs if name in file.attrs else file).__delitem__(name)


HARM: dict[str, tuple[Callable[[h5py.File], None], str]] = {
    "a folder as digest": (attribute("digest", "/home/someone/thesis"), NO_DIGEST),
    "a path as digest": (attribute("digest", "../" * 10 + "ab"), NO_DIGEST),
    "capital digits": (attribute("digest", "A" * 32), NO_DIGEST),
    "a line more": (attribute("digest", "a" * 32 + "\n"), NO_DIGEST),
    "a number as digest": (attribute("digest", 7), "its attribute 'digest' is not a text"),
    "several digests": (attribute("digest", ["a" * 32] * 2), "its attribute 'digest' is not a text"),
    "no labels": (without("train/labels"), "/train/labels"),
    "fewer labels": (lambda file: file["train/labels"].resize(1, axis=0), "the arrays of /train differ in length"),
    "no words": (without("vocabulary"), "/vocabulary"),
    "a row length of 0": (changed("settings", row_length=0), "the row length is 0"),
    "no digest": (without("digest"), "its attribute 'digest' is missing"),
    "rows without end": (longer(*ARRAYS), f"/train/tokens {DECLARED}"),
    "labels without end": (longer("labels"), f"/train/labels {DECLARED}"),
    "no chunk stored": (labels(data=None, shape=(40,), dtype=np.uint8, chunks=(40,)), "not all of them are stored"),
    "not in chunks": (labels(), "/train/labels is not chunked"),
    "chunks of one number": (tokens(data=rows(40).tokens, chunks=(1, 1)), "chunks have whole rows"),
    "a huge chunk": (tokens(**HUGE_CHUNK), r"chunks of \(268435456, 4\); chunks have whole rows"),
    "longer rows": (tokens(data=np.ones((40, 9)), chunks=(40, 9)), r"has the shape \(40, 9\) instead of \(N, 4\)"),
    "shorter rows": (tokens(data=np.ones((40, 3)), chunks=(40, 3)), r"has the shape \(40, 3\) instead of \(N, 4\)"),
    "flat tokens": (tokens(data=np.ones(40), chunks=(40,)), r"has the shape \(40,\) instead of \(N, 4\)"),
    "deep tokens": (tokens(data=np.ones((40, 4, 1)), chunks=(40, 4, 1)), r"has the shape \(40, 4, 1\)"),
    "wide tokens": (tokens(data=rows(40).tokens, dtype=np.uint32), "has the type uint32 instead of uint16"),
    "tokens of another machine": (tokens(data=rows(40).tokens, dtype=">u2"), "has the type >u2 instead of uint16"),
    "signed labels": (labels(dtype=np.int8, chunks=(40,)), "has the type int8 instead of uint8"),
    "labels as text": (labels(data=["a"] * 40, chunks=(40,)), "instead of uint8"),
    "no numbers at all": (labels(data=h5py.Empty(np.uint8)), "/train/labels is not an array"),
    "another filter": (labels(chunks=(40,), compression="lzf"), "other filters than shuffle and gzip"),
    "virtual": (virtual, "/train/labels is not chunked"),
    "external": (external_labels, "/train/labels is not chunked"),
    "external words": (external_words, "/vocabulary is not stored in one piece"),
    "a link to a file": (link(h5py.ExternalLink("other.h5", "/labels")), "/train/labels is a link"),
    "a link to itself": (link(h5py.SoftLink("/test/labels")), "/train/labels is a link"),
    "a linked group": (link(h5py.ExternalLink("other.h5", "/"), "train"), "/train/tokens is a link"),
    "linked words": (link(h5py.SoftLink("/stopwords"), "vocabulary"), "/vocabulary is a link"),
    "a type as array": (link(np.dtype(np.uint8)), "/train/labels is not an array"),
    "numbers as words": (words([1], np.uint8), NOT_WORDS),
    "words of one length": (words([b"a"], "S1"), NOT_WORDS),
    "a table of words": (words([["a", "b"]]), NOT_WORDS),
    "one word alone": (words("a"), NOT_WORDS),
    "packed words": (words(["a"], chunks=(1,), compression="gzip"), "/vocabulary is not stored in one piece"),
    "words not stored": (unstored_words, "/vocabulary declares 9 words, but not all of them are stored"),
    "one word many times": (one_long_word_many_times, "declares 60,000 words, but not all of them are stored"),
    "too many words": (words([f"w{n}" for n in range(10)]), "it has 10 words, but its vocabulary size is 9"),
    "a word twice": (words(["a", "a"]), f"{NO_WORD}, or a word twice"),
    "an empty word": (words(["a", ""]), NO_WORD),
    "a command for a terminal": (words(["a\x1b[2J"]), NO_WORD),
    "no UTF-8": (words([b"\xff\xfe"]), ""),
    "a row length of 4.0": (changed("settings", row_length=4.0), "row_length is not of type int"),
    "a row length of yes": (changed("settings", row_length=True), "row_length is not of type int"),
    "a text as share": (changed("settings", test_share="0.1"), "test_share is not of type float"),
    "no number as share": (changed("settings", test_share=float("nan")), "'settings': .* NaN is not a number"),
    "three ratings": (changed("settings", rating_range=[1, 3, 5]), "rating_range is not of type"),
    "unknown setting": (changed("settings", colour="red"), "'colour' is not a known field"),
    "half a letter": (changed("settings", stopwords="\ud800"), "'settings': it is not JSON"),
    "settings as list": (attribute("settings", "[1]"), "'settings': it is not a JSON object"),
    "endless settings": (attribute("settings", "[" * 60_000), "'settings': it is not JSON"),
    "counts as list": (attribute("counts", "[]"), "'counts': it is not a JSON object"),
    "counts of nothing": (attribute("counts", '{"lines": 7}'), COUNTS_FORM),
    "half of the labels": (changed("counts", labels={"before": {}, "after": {}}), COUNTS_FORM),
    "classes as text": (changed("counts", labels="many"), COUNTS_FORM),
    "a negative count": (changed("counts", lengths={"1": -7}), COUNTS_FORM),
    "words for lengths": (changed("counts", lengths={"one": 7}), COUNTS_FORM),
    "a shown command": (changed("counts", frequent_words=[["\x1b[2J", 7]]), COUNTS_FORM),
    "a version of text": (attribute("layout_version", "two"), "its layout version is not a number"),
    "two versions": (attribute("layout_version", [2, 2]), "its layout version is not a number"),
}


@pytest.mark.parametrize("kind", HARM)
def test_what_a_dataset_cannot_be_is_refused(tmp_path: Path, written: dict[bool, bytes], kind: str) -> None:
    path = tmp_path / "d.h5"
    path.write_bytes(written[True])
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["labels"] = other["secret"] = np.ones(40, np.uint8)
    (tmp_path / "other.raw").write_bytes(bytes(40))
    harm, wrong = HARM[kind]
    with h5py.File(path, "r+") as file:
        harm(file)
    tracemalloc.start()
    try:
        with pytest.raises(
            DataError,
            match=f"^{path} is damaged, or of another version: .*{wrong}.*; make it again by `shoal preprocess`$",
        ):
            open_dataset(path)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("content", "wrong"),
    [(None, "no such file"), (b"no dataset", "is not an HDF5 file"), (b"cut", "is not an HDF5 file, or is damaged")],
)
def test_another_file_is_refused_with_its_name(tmp_path: Path, content: bytes | None, wrong: str) -> None:
    path = tmp_path / "file.h5"
    if content is not None:
        path.write_bytes(make(path, packed=True)[:-100] if content == b"cut" else content)
    with pytest.raises(DataError, match=rf"file\.h5.*{wrong}|{wrong}.*file\.h5"):
        open_dataset(path)


OLD_SETTINGS = attribute("settings", '{"row_length": 4, "rating_range": [1, 5]}')


@pytest.mark.parametrize(
    ("harm", "wrong"),
    [
        (lambda file: [file.attrs.__delitem__(name) for name in list(file.attrs)], "not a Shoal dataset"),
        (attribute("layout_version", 99), "layout version 99, and this Shoal reads 2 and 3"),
        # The first layout had fewer settings; its version has to be found before they are read.
        (lambda file: (OLD_SETTINGS(file), attribute("layout_version", 1)(file)), "layout version 1.*make it again"),
    ],
)
def test_another_layout_is_refused_with_its_version(tmp_path: Path, harm: Any, wrong: str) -> None:
    path = tmp_path / "file.h5"
    make(path, packed=True)
    with h5py.File(path, "r+") as file:
        harm(file)
    with pytest.raises(DataError, match=rf"file\.h5.*{wrong}"):
        open_dataset(path)


@pytest.mark.parametrize("stored", [16, 200])
def test_a_chunk_that_would_fill_more_memory_than_it_should_is_not_unpacked(tmp_path: Path, stored: int) -> None:
    path = tmp_path / "d.h5"
    make(path, packed=True)
    bomb = compress(bytes(1 << 26))[: stored << 10]
    with h5py.File(path, "r+") as file:
        file["train/tokens"].id.write_direct_chunk((0, 0), bomb)
    tracemalloc.start()
    with (
        open_dataset(path) as dataset,
        pytest.raises(DataError, match="a chunk does not have 320 bytes after decompression"),
    ):
        dataset.computed_digest()
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


def test_a_part_file_and_an_empty_split_are_what_shoal_makes(tmp_path: Path) -> None:
    for packed in (True, False):
        with DatasetWriter(tmp_path / "part.h5", SETTINGS, packed=packed) as writer:
            writer.append("test", rows(3))
            writer.finish(vocabulary=[], stopwords=frozenset(), counts={})
        with open_dataset(tmp_path / "part.h5") as dataset:
            assert (len(dataset.train), len(dataset.test), dataset.vocabulary, dataset.counts) == (0, 3, [], {})


def test_a_dataset_that_others_packed_anew_is_the_same(tmp_path: Path, written: dict[bool, bytes]) -> None:
    """Chunks of another size, as h5repack makes them, are no other dataset."""
    path = tmp_path / "d.h5"
    path.write_bytes(written[True])
    with open_dataset(path) as dataset:
        expected = content(dataset)
    with h5py.File(path, "r+") as file:
        for name in ARRAYS:
            values = file[f"train/{name}"][:]
            again(file, f"train/{name}", data=values, chunks=(7, *values.shape[1:]), shuffle=True, compression="gzip")
    with open_dataset(path) as dataset:
        assert content(dataset) == expected
        assert dataset.computed_digest() == dataset.digest


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 300) | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
MUTATIONS = st.one_of(
    st.tuples(st.just("digest"), st.text(max_size=40).filter(lambda text: "\0" not in text) | st.integers(0, 9)),
    st.tuples(st.just("layout_version"), st.integers(-(2**63), 2**63 - 1) | st.floats() | st.just([2])),
    st.tuples(st.sampled_from(["settings", "counts"]), JSON.map(json.dumps)),
    *(
        st.tuples(st.just(name), st.tuples(st.sampled_from(sorted(fields)), JSON))
        for name, fields in (("settings", vars(SETTINGS)), ("counts", COUNTS))
    ),
    st.tuples(
        st.sampled_from([f"{split}/{name}" for split in ("train", "test") for name in ARRAYS]),
        st.integers(0, 2**62) | st.integers(0, 60),
    ),
)


@settings(max_examples=80)
@given(changes=st.lists(MUTATIONS, min_size=1, max_size=3, unique_by=itemgetter(0)), packed=st.booleans())
def test_whatever_a_file_claims_it_is_refused_or_its_rows_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, written: dict[bool, bytes], changes: list[Any], packed: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "claims.h5"
    path.write_bytes(written[packed])
    with h5py.File(path, "r+") as file:
        for name, value in changes:
            if "/" in name:  # once: to take back a length of 10 ** 13, HDF5 visits each chunk that there would be
                file[name].resize(value, axis=0)
            elif isinstance(value, tuple):
                before = json.loads(file.attrs[name]) if isinstance(file.attrs[name], str) else {}
                kept = before if isinstance(before, dict) else {}
                file.attrs[name] = json.dumps({**kept, value[0]: value[1]})
            else:
                file.attrs[name] = value
    try:
        with open_dataset(path) as dataset:
            found = content(dataset)
            assert [len(array) for array in found] == [len(dataset.train)] * 4 + [len(dataset.test)] * 4
            assert len(dataset.train) <= 40
    except DataError:
        pass
