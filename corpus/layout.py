"""The layout of a dataset file: its arrays, their types and chunks, and their digest (docs/dataset.md, "The file").

Chunks hold about 1 MiB of whole rows. Do not make them small: with one row a chunk, reading and writing take ten times
as long.
"""

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from corpus.settings import Settings

LAYOUT_VERSION = 2
DATASET_NAME, COUNTS_NAME = "dataset.h5", "counts.json"
"""The names of a dataset's file and of the file with its counts beside it."""
SPLITS = ("train", "test")
LEAST_ROWS, LEAST_TRAINING_ROWS = 2, 3
"""The fewest rows of a split for training; one of the training rows is held out for validation."""
ARRAYS = ("tokens", "lengths", "labels", "ratings")

_CHUNK_BYTES = 1 << 20
DIGEST_PATTERN = re.compile(r"[0-9a-f]{32}")
"""The form of `ArraysDigest.hexdigest`."""


class RowBlock(NamedTuple):
    """N rows of one split. `tokens` (N, L) ids padded with 0; `lengths`, `labels`, `ratings` (N,)."""

    tokens: npt.NDArray[Any]
    lengths: npt.NDArray[np.uint16]
    labels: npt.NDArray[np.uint8]
    ratings: npt.NDArray[np.uint8]


class Column(NamedTuple):
    """How one array of a split is stored: (N, *row) of `dtype`, cut into chunks of `chunk_rows` rows."""

    name: str
    dtype: np.dtype[Any]
    row: tuple[int, ...]
    chunk_rows: int


def columns(settings: Settings) -> tuple[Column, ...]:
    """The arrays of a split, in the order of ARRAYS.

    The rows of every chunk are a multiple of the rows of a chunk of tokens. So the chunks are filled in the same order,
    whatever the size of the blocks in which rows are added.
    """
    row_bytes = settings.token_dtype.itemsize * settings.row_length
    step = max(1, _CHUNK_BYTES // row_bytes)
    found = [Column("tokens", settings.token_dtype, (settings.row_length,), step)]
    for name, dtype in (
        ("lengths", np.dtype(np.uint16)),
        ("labels", np.dtype(np.uint8)),
        ("ratings", np.dtype(np.uint8)),
    ):
        rows = _CHUNK_BYTES // dtype.itemsize
        found.append(Column(name, dtype, (), rows - rows % step))
    return tuple(found)


class ArraysDigest:
    """The digest of all arrays and the vocabulary, of rows that are added in order, in blocks of any size.

    Each array has a BLAKE2b over its bytes. The digest is the BLAKE2b of those digests, in the layout's order, and of
    the words. Compression and chunks do not change it.
    """

    def __init__(self) -> None:
        self._hashes = {(split, name): blake2b(digest_size=16) for split in SPLITS for name in ARRAYS}

    def update(self, split: str, name: str, values: npt.NDArray[Any]) -> None:
        """Add the next rows of an array; `values` is contiguous and of the array's type."""
        self._hashes[split, name].update(values.data)

    def hexdigest(self, vocabulary: Sequence[str]) -> str:
        """The digest, 32 hexadecimal digits."""
        whole = blake2b(digest_size=16)
        for (split, name), found in self._hashes.items():
            whole.update(f"{split}/{name}\0".encode() + found.digest())
        whole.update("\n".join(vocabulary).encode())
        return whole.hexdigest()


def is_digest(text: str) -> bool:
    """Whether a text has the form of a digest. Do not use any other text as the name of a folder."""
    return DIGEST_PATTERN.fullmatch(text) is not None
