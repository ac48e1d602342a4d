"""Rows of a dataset with the ids of a model's own words, and the rows of two datasets together.

Rows that are mapped from the disk stay there: they are written anew to a file without a name, which goes when the
process ends.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from common.errors import explain_full_disk
from corpus.text import PADDING, UNKNOWN
from trainer.classification.data import TextData, default_cache
from trainer.classification.rows import RaggedRows, Rows, TextRows
from trainer.order import IntArray

_BLOCK = 1 << 20
"""Tokens, or fixed rows of them, at once on their way to the disk."""
_ROWS = 4096
"""Rows at once where rows are gathered."""


def ids_of(vocabulary: Sequence[str], known: Mapping[str, int]) -> npt.NDArray[np.uint16 | np.uint32]:
    """(ids of a dataset,): the ids in `known` of padding, the unknown word, and the words of its vocabulary."""
    found = np.array([PADDING, UNKNOWN, *(known.get(word, UNKNOWN) for word in vocabulary)], np.uint32)
    return found.astype(np.uint16) if int(found.max()) < 1 << 16 else found


def renumbered(
    data: TextData, vocabulary: list[str], known: Mapping[str, int], classes: tuple[str, ...], *, cache: Path | None
) -> TextData:
    """The data with the words of a `vocabulary`, whose ids are `known`, and with the labels of `classes`, which has
    those of the data. `cache`: where rows on the disk are, as in `load_data`."""
    ids = ids_of(data.vocabulary, known)
    labels = np.array([classes.index(name) for name in data.classes], np.uint16)
    stored: dict[int, npt.NDArray[Any]] = {}
    parts: dict[str, Any] = {}
    for part in data.sizes:
        rows: Rows = getattr(data, part)
        if id(rows.tokens) not in stored:  # parts of whole texts share their tokens
            blocks = _blocks(rows.tokens, ids)
            stored[id(rows.tokens)] = _stored(rows.tokens, blocks, len(rows.tokens), ids.dtype, cache)
        parts[part] = replace(
            rows,
            tokens=stored[id(rows.tokens)],
            labels=labels[rows.labels] if data.classes else rows.labels,
            device_tokens=None,
        )
    return replace(data, vocabulary=vocabulary, classes=classes, **parts)


def joined(rows: Rows, more: Rows, *, cache: Path | None) -> Rows:
    """These rows, then `more`, with the same ids, as rows of the first ones' kind, length and place."""
    dtype = np.promote_types(rows.tokens.dtype, more.tokens.dtype)
    lengths = more.lengths.astype(np.int64)
    if isinstance(rows, RaggedRows):
        added: Iterator[npt.NDArray[Any]] = _flat_blocks(more)
        count = len(rows.tokens) + int(lengths.sum())
        other: dict[str, Any] = {"ends": np.concatenate([rows.ends, len(rows.tokens) + np.cumsum(lengths)])}
    else:
        assert isinstance(rows, TextRows)
        lengths = np.minimum(lengths, rows.tokens.shape[1])
        added = _padded_blocks(more, lengths, rows.tokens.shape[1])
        count, other = len(rows) + len(more), {}

    def blocks() -> Iterator[npt.NDArray[Any]]:
        yield from _blocks(rows.tokens)
        yield from added

    for name in ("labels", "ratings"):
        other[name] = np.concatenate([getattr(rows, name), getattr(more, name)])
    return replace(
        rows,
        tokens=_stored(rows.tokens, blocks(), count, dtype, cache),
        lengths=np.concatenate([rows.lengths, lengths.astype(rows.lengths.dtype)]),
        device_tokens=None,
        **other,
    )


def flat_rows(rows: Rows) -> Iterator[tuple[npt.NDArray[np.int32], IntArray]]:
    """Some rows at a time: the words of all of these, one row after the other, and where each row ends."""
    for start in range(0, len(rows), _ROWS):
        batch = rows.whole_batch(np.arange(start, min(start + _ROWS, len(rows))), torch.device("cpu"))
        yield batch.tokens.numpy(), np.cumsum(batch.lengths.numpy())


def _flat_blocks(rows: Rows) -> Iterator[npt.NDArray[np.int32]]:
    for tokens, _ in flat_rows(rows):
        yield tokens


def _padded_blocks(rows: Rows, lengths: IntArray, width: int) -> Iterator[npt.NDArray[np.int32]]:
    """The rows, cut to these `lengths` (n,), and padded to a width."""
    done = 0
    for tokens, ends in flat_rows(rows):
        kept = np.arange(width) < lengths[done : done + len(ends), None]
        starts = np.concatenate([[0], ends[:-1]])
        places = starts[:, None] + np.arange(width)
        yield np.where(kept, tokens[places * kept], PADDING).astype(np.int32)
        done += len(ends)


def _blocks(tokens: npt.NDArray[Any], ids: npt.NDArray[Any] | None = None) -> Iterator[npt.NDArray[Any]]:
    """The tokens, with other ids where there are some."""
    step = max(1, _BLOCK // max(1, int(np.prod(tokens.shape[1:]))))
    for start in range(0, len(tokens), step):
        block = tokens[start : start + step]
        yield block if ids is None else ids[block]


def _stored(
    like: npt.NDArray[Any], blocks: Iterator[npt.NDArray[Any]], count: int, dtype: npt.DTypeLike, cache: Path | None
) -> npt.NDArray[Any]:
    """An array of `count` entries of blocks, in memory, or on the disk where an array `like` it is there."""
    shape = (count, *like.shape[1:])
    if not isinstance(like, np.memmap):
        found, done = np.empty(shape, dtype), 0
        for block in blocks:
            found[done : done + len(block)] = block
            done += len(block)
        return found
    folder = cache or default_cache()
    with explain_full_disk(folder, "--cache"), TemporaryFile(dir=folder) as file:
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype).data)
        file.flush()
        return np.memmap(file, dtype, "r", shape=shape)
