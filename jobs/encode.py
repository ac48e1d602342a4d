"""Fourth step: encodes the distinct texts of a part as rows, in a part file with the layout of a dataset.

A part file does not contain the vocabulary, because a full vocabulary has millions of words and there can be thousands
of parts. The name of a part file depends only on its digest prefix, and the bytes of the file depend only on its rows.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from corpus.dataset import SPLITS, DatasetWriter, RowBlock
from corpus.dataset_settings import Settings
from corpus.dictionary import Dictionary, Offsets
from corpus.reading.s3 import is_s3
from corpus.reading.storage import readable, writable
from corpus.reading.tally import Tally
from corpus.segments import fill_rows, gather
from corpus.text import FIRST_WORD, UNKNOWN
from jobs.choose import VocabularyChoice
from jobs.plan import Plan
from jobs.records import Arrays, StoredArray, part_url, read_arrays, texts_url

_BLOCK_ROWS = 1 << 15
_BLOCK_TOKENS = 1 << 20
_BLOCK_WORDS = 1 << 16
# Number of words outside the vocabulary that the dictionary keeps before they are cleared.
_MAX_OTHER_WORDS = 1 << 18


class Encoder:
    """Encodes parts with the chosen vocabulary, which it loads once."""

    def __init__(self, plan: Plan, choice: VocabularyChoice) -> None:
        self._plan, self._positive_from = plan, choice.positive_from
        self._ids = VocabularyIds(choice.joined)

    @contextmanager
    def part(self, path: Path) -> "Iterator[EncodedPart]":
        """Yield the rows of a file with a part's distinct texts."""
        with path.open("rb") as file:
            texts, ids = read_arrays(file, "ids")
            yield EncodedPart(texts, ids, self._ids, self._positive_from, self._plan.settings)

    def write(self, part: str, report: Callable[[int], None]) -> Tally:
        """Write the rows of a part to a part file, and return their counts."""
        plan, settings, tally = self._plan, self._plan.settings, Tally()
        with (
            readable(texts_url(plan.texts, part)) as texts,
            writable(part_url(plan.parts, part)) as path,
            # Compress only for S3, because compression is slower than a disk but faster than a network.
            DatasetWriter(path, settings, packed=is_s3(plan.parts)) as writer,
        ):
            with self.part(texts) as encoded:
                encoded.append_to(writer, tally)
            writer.finish(vocabulary=(), stopwords=frozenset(plan.stopwords), counts={})
            report(texts.stat().st_size)
        return tally


class VocabularyIds:
    """Looks up the vocabulary's ids of words. `vocabulary` has the words, separated by spaces."""

    def __init__(self, vocabulary: str) -> None:
        self._vocabulary, self._size = vocabulary, vocabulary.count(" ") + 1
        self._dictionary = Dictionary(expected=self._size)
        self._add_vocabulary()

    def __call__(self, words: bytes) -> npt.NDArray[np.int64]:
        """Return the ids of `words`, which are separated by spaces."""
        if len(self._dictionary) > self._size + _MAX_OTHER_WORDS:
            self._dictionary.clear()
            self._add_vocabulary()
        ranks = self._dictionary.add(words).astype(np.int64)
        return np.where(ranks < self._size, ranks + FIRST_WORD, UNKNOWN)

    def _add_vocabulary(self) -> None:
        """Add the words in blocks, because the dictionary keeps a buffer for the largest block."""
        words = self._vocabulary.encode()
        spaces = np.flatnonzero(np.frombuffer(words, np.uint8) == ord(" "))
        for before, end in pairwise([-1, *spaces[_BLOCK_WORDS - 1 :: _BLOCK_WORDS].tolist(), len(words)]):
            self._dictionary.add(words[before + 1 : end])


class EncodedPart:
    """Rows of a part's distinct texts, with the vocabulary's ids instead of the part's ids.

    `side` and `side_ids` are the arrays of `part_reducer.DistinctTexts.rows`. `side_ids` is the largest array: only the
    ids of one block of rows are in memory.
    """

    def __init__(
        self, side: Arrays, side_ids: StoredArray, vocabulary: VocabularyIds, positive_from: int, settings: Settings
    ) -> None:
        self._new_ids = vocabulary(side["words"].tobytes()).astype(settings.token_dtype)
        self._side, self._side_ids = side, side_ids
        self._lengths = side["lengths"].astype(np.int64)
        self._ends = np.cumsum(self._lengths)
        self._positive_from = positive_from
        self._settings = settings

    def append_to(self, writer: DatasetWriter, tally: Tally) -> None:
        """Append all rows to a dataset, and add their counts to `tally`."""
        for split in SPLITS:
            for rows in self.blocks(split):
                writer.append(split, rows)
                tally.counts.update(_counts(split, rows, self._settings))

    def blocks(self, split: str) -> Iterator[RowBlock]:
        """Yield the rows of a split in order, in blocks of bounded size."""
        copies = np.flatnonzero(self._side["test"] == SPLITS.index(split))
        ends = np.cumsum(self._side["times"][copies])
        count = int(ends[-1]) if len(ends) else 0
        for start in range(0, count, _BLOCK_ROWS):
            numbers = np.arange(start, min(start + _BLOCK_ROWS, count))
            block = copies[np.searchsorted(ends, numbers, "right")]
            texts, codes = self._side["text"][block], self._side["code"][block]
            labels = codes if self._settings.classes else (codes >= self._positive_from).astype(np.uint8)
            ratings = np.zeros_like(codes) if self._settings.labelled else codes
            if self._settings.ragged:
                yield from self._ragged(texts, labels, ratings)
            else:
                tokens = np.zeros((len(block), self._settings.row_length), self._settings.token_dtype)
                fill_rows(*self._segments(texts), self._new_ids, tokens)
                yield RowBlock(tokens, self._side["lengths"][texts], labels, ratings)

    def _ragged(
        self, texts: npt.NDArray[Any], labels: npt.NDArray[np.uint8], ratings: npt.NDArray[np.uint8]
    ) -> Iterator[RowBlock]:
        """Yield the rows of the given texts in blocks. A block has a bounded number of tokens, or one row that is
        longer."""
        ends = np.cumsum(self._lengths[texts])
        done = 0
        while done < len(texts):
            before = int(ends[done - 1]) if done else 0
            last = max(done + 1, int(np.searchsorted(ends, before + _BLOCK_TOKENS, "right")))
            rows = slice(done, last)
            side_ids, starts, lengths = self._segments(texts[rows])
            ids = np.empty(int(ends[last - 1]) - before, side_ids.dtype)
            gather(side_ids, starts, lengths, ends[rows] - before - lengths, ids)
            yield RowBlock(self._new_ids[ids], lengths, labels[rows], ratings[rows])
            done = last

    def _segments(self, texts: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Offsets, Offsets]:
        """Return the ids of a range of texts, and the start and the length of each of `texts` in them. `texts` is
        sorted."""
        first = int(self._ends[texts[0]] - self._lengths[texts[0]])
        lengths = self._lengths[texts]
        return self._side_ids[first : int(self._ends[texts[-1]])], self._ends[texts] - lengths - first, lengths


def _counts(split: str, rows: RowBlock, settings: Settings) -> dict[str, int]:
    positive = {} if settings.classes else {f"positive_{split}": int(rows.labels.sum())}
    return {
        **positive,
        "tokens": int(rows.lengths.sum(dtype=np.int64)),
        "unknown_tokens": int((rows.tokens == UNKNOWN).sum()),
    }
