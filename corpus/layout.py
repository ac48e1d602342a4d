"""Defines the two layouts of a dataset file: arrays, types, chunks and digest (docs/reference/dataset.md, "The file").

In layout version 2, rows are fixed: cut and padded to one length. In layout version 3, rows are ragged: whole texts,
concatenated. In both versions, a block of rows in memory has the lengths of its rows. A file of version 3 stores the
ends of the rows instead.

Chunks have about 1 MiB, and consist of whole rows if rows are fixed. Do not use much smaller chunks: with one row per
chunk, reading and writing take ten times as long.
"""

import re
from collections.abc import Sequence
from hashlib import blake2b
from math import prod
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from corpus.dataset_settings import Settings

Array = npt.NDArray[Any]

FIXED, RAGGED = 2, 3
"""Layout versions that Shoal reads and writes."""
DATASET_NAME, COUNTS_NAME = "dataset.h5", "counts.json"
"""Name of the dataset file, and name of the file in the same folder that contains its counts."""
SPLITS = ("train", "test")
MIN_ROWS, MIN_TRAINING_ROWS = 2, 3
"""Minimum number of rows in the test split and in the training split.

One of the training rows is held out for validation.
"""
MAX_ROW_WORDS = 4 << 20
"""Maximum number of words in a ragged row.

A text has at most this many bytes (MAX_LINE_BYTES), so it cannot have more words.
"""

_CHUNK_BYTES = 1 << 20
DIGEST_PATTERN = re.compile(r"[0-9a-f]{32}")
"""Pattern of the strings that `ArraysDigest.hexdigest` returns."""


class RowBlock(NamedTuple):
    """N rows of one split.

    `lengths`, `labels` and `ratings` have the shape (N,). `tokens` has the word ids. Fixed rows are padded with 0 to
    the shape (N, L). Ragged rows are concatenated, with the shape (sum of lengths,).
    """

    tokens: Array
    lengths: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    ratings: npt.NDArray[np.uint8]

    def part(self, start: int, end: int) -> Self:
        """Return the rows in [`start`, `end`)."""
        first, last = start, end
        if self.tokens.ndim == 1:
            first = int(self.lengths[:start].sum(dtype=np.int64))
            last = first + int(self.lengths[start:end].sum(dtype=np.int64))
        others = (array[start:end] for array in (self.lengths, self.labels, self.ratings))
        return type(self)(self.tokens[first:last], *others)

    def stored(self, before: int) -> dict[str, Array]:
        """Return the arrays that a file stores for these rows, by name.

        `before` is the number of tokens that precede these rows in the split.
        """
        if self.tokens.ndim == 2:
            return self._asdict()
        ends = before + np.cumsum(self.lengths, dtype=np.int64)
        return {"tokens": self.tokens, "ends": ends, "labels": self.labels, "ratings": self.ratings}


class Column(NamedTuple):
    """Description of one array of a split: shape (N, *row), type `dtype`, chunks of `chunk_rows` rows.

    The tokens of ragged rows have the shape (T,), with chunks of `chunk_rows` tokens.
    """

    name: str
    dtype: np.dtype[Any]
    row: tuple[int, ...]
    chunk_rows: int


def layout_version(settings: Settings) -> int:
    return RAGGED if settings.ragged else FIXED


def columns(settings: Settings) -> tuple[Column, ...]:
    """Return the columns of a split, in the order of the layout.

    Except for ragged tokens, the number of rows in a chunk is a multiple of the number of rows in the smallest chunk.
    So the chunks become full in the same order, regardless of the sizes of the blocks in which rows are added.
    """
    tokens, labels, ratings = settings.token_dtype, settings.label_dtype, np.dtype(np.uint8)
    row = () if settings.ragged else (settings.row_length,)
    places = ("ends", np.dtype(np.int64)) if settings.ragged else ("lengths", np.dtype(np.uint16))
    step = max(1, _CHUNK_BYTES // (tokens.itemsize * prod(row)))
    found = [Column("tokens", tokens, row, step)]
    for name, dtype in (places, ("labels", labels), ("ratings", ratings)):
        rows = _CHUNK_BYTES // dtype.itemsize
        found.append(Column(name, dtype, (), rows if settings.ragged else rows - rows % step))
    return tuple(found)


class ArraysDigest:
    """Digest of all arrays of a dataset and of its vocabulary. Add the rows in order, in blocks of any size.

    The BLAKE2b hash of each array is computed. The digest is the BLAKE2b hash of these hashes, in the order of the
    layout, followed by the vocabulary's words. It does not depend on compression and chunks.
    """

    def __init__(self, settings: Settings) -> None:
        names = [column.name for column in columns(settings)]
        self._hashes = {(split, name): blake2b(digest_size=16) for split in SPLITS for name in names}

    def update(self, split: str, name: str, values: npt.NDArray[Any]) -> None:
        """Add the next rows of an array. `values` must be contiguous and have the data type of the array."""
        self._hashes[split, name].update(values.data)

    def hexdigest(self, vocabulary: Sequence[str]) -> str:
        """Return the digest as 32 hexadecimal digits."""
        whole = blake2b(digest_size=16)
        for (split, name), found in self._hashes.items():
            whole.update(f"{split}/{name}\0".encode() + found.digest())
        whole.update("\n".join(vocabulary).encode())
        return whole.hexdigest()


def is_digest(text: str) -> bool:
    """Return whether a string has the form of a digest.

    Check this before a digest that a file or user provides becomes the name of a folder.
    """
    return DIGEST_PATTERN.fullmatch(text) is not None
