"""Collects the texts of a task in bounded memory, and emits them as one block per part.

Each text's words are replaced immediately by ids from a dictionary of this task. When enough texts are collected,
duplicates are combined and their ratings are counted. Then one block with the ids and their words is emitted for each
part (a digest prefix). So a text that occurs ten million times adds only a few bytes per block to the shuffle.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from corpus.dataset_settings import Settings
from corpus.segments import gather, renumber
from corpus.text import digests
from corpus.token_dictionary import dictionary_of
from jobs.records import Arrays

# About 60 MB of raw reviews, with 4 bytes per id. The extra ids are space for the last batch.
_MAX_IDS = 4 << 20
_EXTRA_IDS = 1 << 20
_MAX_TEXTS = 1 << 18
# In a larger dictionary, most words would never occur again.
_MAX_WORDS = 1 << 18
# Limit the total length of new words, too, because a single word can have megabytes.
_MAX_LETTERS = 32 << 20
_CODE_BITS = 16
"""Bits of the code of a rating or label in a key of `copy_keys`."""

Halves = npt.NDArray[np.uint64]


class Collector:
    """Collects texts. When `full` is true, the caller calls `blocks`, which emits and removes the collected texts."""

    def __init__(self, stopwords: Sequence[str], part_bits: int, settings: Settings) -> None:
        self.counts: Counter[str] = Counter()
        self._tokeniser = dictionary_of(settings.words, stopwords)
        self._part_bits, self._code_dtype = part_bits, settings.label_dtype
        self._ids = np.empty(_MAX_IDS + _EXTRA_IDS, np.uint32)
        self._start()

    def _start(self) -> None:
        self._filled = 0
        self._digests = bytearray()
        self._lengths: list[npt.NDArray[np.int64]] = []
        self._codes = bytearray()
        self._tests = bytearray()

    @property
    def full(self) -> bool:
        """Whether so many texts are collected that the caller must call `blocks`."""
        return len(self._tests) > _MAX_TEXTS or self._filled > _MAX_IDS or self._dictionary_full

    @property
    def _dictionary_full(self) -> bool:
        return len(self._tokeniser) > _MAX_WORDS or self._tokeniser.letters > _MAX_LETTERS

    def add(self, texts: Sequence[str], codes: Sequence[int], test: bool) -> None:
        """Add texts with the codes of their ratings or labels. If `test` is true, the texts come from a file of the
        test set."""
        words = self._tokeniser(texts)
        ends = words.cleaned_ends
        starts = np.concatenate(([0], ends[:-1]))
        nonempty = np.flatnonzero(ends > starts)
        last = ends[nonempty] - 1  # drop the space after the last word
        self._digests += digests(words.cleaned.data, zip(starts[nonempty].tolist(), last.tolist(), strict=True))
        self._codes += np.array(codes, self._code_dtype)[nonempty].tobytes()
        self._tests += bytes([test]) * len(nonempty)
        self._lengths.append(np.diff(words.ends, prepend=0)[nonempty])
        self.counts["texts"] += len(nonempty)
        self.counts["empty"] += len(texts) - len(nonempty)
        if self._filled + len(words.ids) > len(self._ids):
            self._ids = np.concatenate((self._ids, np.empty(len(words.ids), np.uint32)))
        self._ids[self._filled : self._filled + len(words.ids)] = words.ids
        self._filled += len(words.ids)

    def blocks(self) -> Iterator[tuple[int, Arrays]]:
        """Yield the number and the block of each part that has texts. Afterwards the collector is empty.

        A block has n distinct texts in the order of their digests. `hi` and `lo`, of shape (n,), are the halves of the
        digests. `lengths`, of shape (n,), is the number of kept words per text. `ids` is the ids of all kept words,
        text by text; an id is an index into `words`, which are separated by spaces. Entry i of `text`, `code`, `test`
        and `times` says: the text `text[i]` occurred `times[i]` times with the code `code[i]`, in files of the test set
        if `test[i]` is 1.
        """
        if not self._tests:
            return
        high, low = np.frombuffer(self._digests, ">u8").reshape(-1, 2).T.astype(np.uint64)
        codes = np.frombuffer(self._codes, self._code_dtype)
        lengths = np.concatenate(self._lengths)
        starts = np.cumsum(lengths) - lengths
        order = np.lexsort((low, high))
        firsts = first_of_each(high[order], low[order])
        tests = np.frombuffer(self._tests, np.uint8)
        keys, times = np.unique(
            copy_keys(group_numbers(firsts, len(order)), codes[order], tests[order]), return_counts=True
        )
        text, code, test = parts_of_keys(keys, self._code_dtype)
        chosen = order[firsts]
        high, low, lengths, starts = high[chosen], low[chosen], lengths[chosen], starts[chosen]
        for before, count in enumerate(np.bincount(codes).tolist()):
            self.counts[f"codes.before.{before}"] += count

        numbers = np.full(len(self._tokeniser), -1, np.int64)
        words = np.empty(len(self._tokeniser), np.int64)
        parts = part_numbers(high, self._part_bits)
        ends = [*(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(parts)]
        begin = 0
        for end in ends:
            texts_of_part = slice(begin, end)
            tally = slice(*np.searchsorted(text, (begin, end)).tolist())
            targets = np.cumsum(lengths[texts_of_part])
            ids = np.empty(int(targets[-1]), np.uint32)
            gather(self._ids, starts[texts_of_part], lengths[texts_of_part], targets - lengths[texts_of_part], ids)
            known = renumber(ids, numbers, words)
            block: Arrays = {
                "hi": high[texts_of_part],
                "lo": low[texts_of_part],
                "lengths": lengths[texts_of_part].astype(np.uint32),
                "text": (text[tally] - begin).astype(np.uint32),
                "code": code[tally],
                "test": test[tally],
                "times": times[tally].astype(np.uint32),
                "ids": ids.astype(np.uint16) if known <= 1 << 16 else ids,
                "words": np.frombuffer(self._tokeniser.join_words(words[:known]), np.uint8),
            }
            yield int(parts[begin]), block
            begin = end
        self._start()
        if self._dictionary_full:
            self._tokeniser.clear()


def first_of_each(high: Halves, low: Halves) -> npt.NDArray[np.int64]:
    """Return the index at which each distinct digest first occurs in sorted digests. `high` and `low`, of shape (n,),
    are the halves of the digests."""
    return np.flatnonzero(np.concatenate(([True], (high[1:] != high[:-1]) | (low[1:] != low[:-1]))))


def group_numbers(firsts: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.int64]:
    """Return the group number of each of `n` sorted elements. `firsts` has the index of each group's first element."""
    begins = np.zeros(n, np.int64)
    begins[firsts[1:]] = 1
    return np.cumsum(begins)


def copy_keys(
    texts: npt.NDArray[np.int64], codes: npt.NDArray[Any], tests: npt.NDArray[np.uint8]
) -> npt.NDArray[np.int64]:
    """Return one integer key for each triple of text, code and set (1 for the test set). Keys sort by text, then code,
    then set."""
    keys: npt.NDArray[np.int64] = (texts << _CODE_BITS | codes) << 1 | tests
    return keys


def parts_of_keys(
    keys: npt.NDArray[np.int64], code_dtype: npt.DTypeLike
) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """Return the texts, codes and sets from which `copy_keys` computed these keys."""
    codes = (keys >> 1 & (1 << _CODE_BITS) - 1).astype(code_dtype)
    return keys >> _CODE_BITS + 1, codes, (keys & 1).astype(np.uint8)


def part_numbers(high: Halves, bits: int) -> npt.NDArray[np.int64]:
    """Return the part number of each digest: its first `bits` bits. So parts have the same order as their digests."""
    return (high >> np.uint64(64 - bits)).astype(np.int64)
