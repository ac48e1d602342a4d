"""Parts of a stream are read as they were written, and any other file is refused."""

import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from corpus.stream.parts import ROW_TOKENS, Part, Position, part_path, read_part, write_part

PART = Part(
    number=3,
    words=("fish", "swim"),
    counts=np.array([130, 1], np.int64),
    tokens=np.repeat(np.array([1, 2, 0], np.int32), [130, 1, 125]).reshape(2, ROW_TOKENS),
    after=Position(offsets={"/a": 7}, lines=2, words=131, begun={"/a": 3}, identities={"s3://b/c": "e"}, ended=("/z",)),
)
word = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=9)
count = st.integers(0, 1 << 60)
name = st.text(max_size=9)
at = st.dictionaries(name, count, max_size=3)
position = st.builds(
    Position,
    **dict.fromkeys(("lines", "words", "text_bytes", "malformed"), count),
    **dict.fromkeys(("offsets", "begun"), at),
    identities=st.dictionaries(name, name, max_size=3),
    ended=st.lists(name, max_size=3).map(tuple),
)


@given(words=st.lists(word, max_size=20, unique=True), rows=st.integers(1, 3), seed=st.integers(0, 9), after=position)
def test_a_part_is_read_as_written(tmp_path, words, rows, seed, after) -> None:
    tokens = np.random.default_rng(seed).integers(0, len(words) + 1, (rows, ROW_TOKENS), dtype=np.int32)
    tokens[0, : len(words)] = np.arange(1, len(words) + 1)
    counts = np.bincount(tokens.ravel(), minlength=len(words) + 1)[1:]
    write_part(tmp_path, Part(number=seed, words=tuple(words), counts=counts, tokens=tokens, after=after))
    found = read_part(part_path(tmp_path, seed))
    assert (found.number, found.words, found.after) == (seed, tuple(words), after)
    np.testing.assert_array_equal(found.tokens, tokens)
    np.testing.assert_array_equal(found.counts, counts)


def test_a_part_with_damage_at_any_byte_is_refused(tmp_path) -> None:
    write_part(tmp_path, PART)
    path = part_path(tmp_path, 3)
    whole = path.read_bytes()
    for place in range(0, len(whole), 41):
        path.write_bytes(whole[:place])
        with pytest.raises(DataError, match="remove its folder"):
            read_part(path)
    # The checksums of the archive cover each byte of the arrays.
    for place in range(whole.index(b"fish"), whole.index(b"fish") + 9):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(DataError, match="remove its folder"):
            read_part(path)


def test_a_part_that_would_fill_more_memory_than_its_file_is_refused(tmp_path, messages) -> None:
    arrays = {"head": np.zeros(9, np.uint8), "tokens": np.zeros((1 << 16, ROW_TOKENS), np.int32)}
    np.savez_compressed(part_path(tmp_path, 3), **arrays)
    with messages.raises(DataError):
        read_part(part_path(tmp_path, 3))
    with zipfile.ZipFile(part_path(tmp_path, 3), "w") as archive, archive.open("head.npy", "w") as head:
        np.lib.format.write_array_header_1_0(head, {"descr": "<i8", "fortran_order": False, "shape": (1 << 60,)})
    with pytest.raises(DataError, match="not a complete part"):
        read_part(part_path(tmp_path, 3))


IMPOSSIBLE = {
    "short rows": {"tokens": np.zeros((2, 5), np.int32)},
    "a token without a word": {"tokens": np.full((1, ROW_TOKENS), 3, np.int32)},
    "a negative token": {"tokens": np.full((1, ROW_TOKENS), -1, np.int32)},
    "a repeated word": {"words": ("fish", "fish")},
    "fewer words than counts": {"words": ("fish",)},
    "an empty word": {"words": ("fish", "")},
    "a count of 0": {"counts": np.array([1, 0], np.int64)},
    "negative lines": {"after": Position(lines=-1)},
    "a negative token number": {"after": Position(begun={"/a": -1})},
    "a number as identity": {"after": Position(identities={"/a": 1})},
    "a number as ended file": {"after": Position(ended=(1,))},
}


@pytest.mark.parametrize("kind", IMPOSSIBLE)
def test_a_part_with_impossible_content_is_refused(tmp_path, kind, messages) -> None:
    write_part(tmp_path, replace(PART, **IMPOSSIBLE[kind]))
    with messages.raises(DataError):
        read_part(part_path(tmp_path, 3))


HEAD = np.frombuffer(b'{"format": 1}', np.uint8)


@pytest.mark.parametrize(
    ("harm", "wrong"),
    [
        (lambda path: path.write_bytes(part_path(path.parent, 3).read_bytes()), "its name does not match"),
        (lambda path: np.savez(path, x=HEAD), "not a complete part"),
        (lambda path: np.savez(path, head=HEAD, words=HEAD, counts=HEAD, tokens=HEAD), "not a complete part"),
    ],
)
def test_an_archive_that_is_not_a_part_is_refused(tmp_path, harm, wrong) -> None:
    write_part(tmp_path, PART)
    harm(part_path(tmp_path, 4))
    with pytest.raises(DataError, match=wrong):
        read_part(part_path(tmp_path, 4))
