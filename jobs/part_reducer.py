"""Reduces all blocks of one part to the distinct texts of the part, by rules 3 to 8 of
docs/reference/dataset.md.

The number of parts grows with the input, so that the memory for one part does not grow. A text is stored once, even if
each of its copies makes a row. Otherwise a text that occurs ten million times would not fit into memory. The result
must depend only on the texts, not on the order of the blocks. So word ids are assigned in the order of first appearance
in the texts, which are sorted by digest.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from corpus.counts import LENGTH_BINS
from corpus.dataset_settings import Settings
from corpus.dictionary import Dictionary
from corpus.rules import in_test_sets, modal_ratings
from corpus.segments import add_counts, gather, renumber
from jobs.collector import copy_keys, first_of_each, group_numbers, parts_of_keys
from jobs.records import Arrays

_LAST_BIN = len(LENGTH_BINS) - 1


@dataclass(frozen=True, kw_only=True)
class DistinctTexts:
    """Distinct texts of a part.

    `rows` describes the n texts that keep at least one word, in the order of their digests. `lengths`, of shape (n,),
    is the number of kept words per text, at most the row length if rows are fixed. `ids` is the ids of the kept words,
    text by text; an id is an index into `words`, which are separated by spaces. `text`, `code`, `test` and `times`, of
    shape (m,), list the rows in order: entry i stands for `times[i]` rows of the text `text[i]` with the code
    `code[i]`, in the test set if `test[i]` is 1. If equal texts make one row, each text has one entry, and m is n.

    `words` has the ids, in `dictionary`, of the words in training rows. `frequencies` has the number of times that each
    of these words occurs before rows are cut.
    """

    rows: Arrays
    dictionary: Dictionary
    words: npt.NDArray[np.int64]
    frequencies: npt.NDArray[np.int64]
    counts: Counter[str]


class _Copies(NamedTuple):
    """Occurrences of N texts, combined by text, code and set and sorted in this order. All fields have the shape (M,).

    Entry i stands for `times[i]` copies of the text `text[i]` with the code `code[i]`, in the test set if `test[i]` is
    1.
    """

    text: npt.NDArray[np.int64]
    code: npt.NDArray[Any]
    test: npt.NDArray[np.uint8]
    times: npt.NDArray[np.int64]

    def chosen(self, which: npt.NDArray[np.bool_]) -> "_Copies":
        return _Copies(self.text[which], self.code[which], self.test[which], self.times[which])


class PartReducer:
    """Collects the blocks of one part, and merges them into the part's distinct texts."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._dictionary = Dictionary()
        self._blocks: list[Arrays] = []

    def add(self, block: Arrays) -> None:
        block = {**block, "mapping": self._dictionary.add(block["words"].tobytes())}
        block["lengths"] = block["lengths"].astype(np.int64)
        block["starts"] = np.cumsum(block["lengths"]) - block["lengths"]
        self._blocks.append(block)

    def unite(self) -> DistinctTexts:
        settings = self._settings
        high, low, lengths = (self._all(name) for name in ("hi", "lo", "lengths"))
        order = np.lexsort((low, high))
        firsts = first_of_each(high[order], low[order])
        group = np.empty(len(order), np.int64)
        group[order] = group_numbers(firsts, len(order))
        chosen = order[firsts]
        lengths = lengths[chosen]
        copies, conflicting = self._copies(group[self._texts()], high[chosen])

        has_row = lengths > 0
        cut = lengths if settings.ragged else np.minimum(lengths, settings.row_length)
        ids = self._rows(chosen, cut)
        words = np.empty(len(self._dictionary), np.int64)
        known = renumber(ids, np.full(len(self._dictionary), -1, np.int64), words)
        frequencies = self._frequencies(chosen, copies)
        used = np.flatnonzero(frequencies)
        rows = copies.chosen(has_row[copies.text])
        return DistinctTexts(
            rows={
                "lengths": cut[has_row].astype(np.uint32 if settings.ragged else np.uint16),
                "text": (np.cumsum(has_row) - 1)[rows.text].astype(np.uint32),
                "code": rows.code,
                "test": rows.test,
                "times": rows.times,
                "ids": ids.astype(np.uint16) if known <= 1 << 16 else ids,
                "words": np.frombuffer(self._dictionary.join_words(words[:known]), np.uint8),
            },
            dictionary=self._dictionary,
            words=used,
            frequencies=frequencies[used],
            counts=self._counts(lengths, copies, rows, conflicting),
        )

    def _copies(self, texts: npt.NDArray[np.int64], high: npt.NDArray[np.uint64]) -> tuple[_Copies, int]:
        """Return the copies of N texts, and the number of texts with conflicting ratings. This number is 0 if each copy
        makes a row.

        For each entry of the blocks' `text`, `texts` has the number of the text, from 0 to N - 1. `high`, of shape
        (N,), is the first half of each digest.
        """
        codes, tests, times = (self._all(name) for name in ("code", "test", "times"))
        by_digest = in_test_sets(high, self._settings.test_share)
        if self._settings.duplicates:
            keys, which = np.unique(
                copy_keys(texts, codes, tests if self._settings.test_input else by_digest[texts]), return_inverse=True
            )
            sums = np.zeros(len(keys), np.int64)
            np.add.at(sums, which, times)
            return _Copies(*parts_of_keys(keys, self._settings.label_dtype), sums), 0
        modal, conflicting = modal_ratings(texts, codes, times)
        if self._settings.test_input:
            by_file = np.zeros(len(high), np.uint8)
            np.maximum.at(by_file, texts, tests)
        test = by_file if self._settings.test_input else by_digest
        return _Copies(np.arange(len(high)), modal, test, np.ones(len(high), np.int64)), int(conflicting.sum())

    def _counts(self, lengths: npt.NDArray[np.int64], copies: _Copies, rows: _Copies, conflicting: int) -> Counter[str]:
        """Return the counts for the tally. `lengths` is the number of kept words per text; `rows` has the `copies` that
        keep a word."""
        long = 0 if self._settings.ragged else rows.times[lengths[rows.text] > self._settings.row_length].sum()
        counts = Counter(
            distinct=int(copies.times.sum()),
            conflicting=conflicting,
            wordless=int(copies.times.sum() - rows.times.sum()),
            train=int(rows.times[rows.test == 0].sum()),
            test=int(rows.times[rows.test == 1].sum()),
            cut=int(long),
        )
        for code, count in enumerate(_sums(copies.code, copies.times).tolist()):
            counts[f"codes.after.{code}"] = count
        powers = np.frexp(lengths[rows.text])[1] - 1  # exponent of the largest power of two that is at most the length
        for power, count in enumerate(_sums(np.minimum(powers, _LAST_BIN), rows.times).tolist()):
            counts[f"lengths.{LENGTH_BINS[power]}"] = count
        return counts

    def _all(self, name: str) -> npt.NDArray[Any]:
        return np.concatenate([block[name] for block in self._blocks])

    def _texts(self) -> npt.NDArray[np.int64]:
        """Return the blocks' `text` as one array, with the texts numbered over all blocks."""
        sizes = [len(block["hi"]) for block in self._blocks]
        before = np.cumsum(sizes) - sizes
        return np.concatenate([block["text"] + start for block, start in zip(self._blocks, before, strict=True)])

    def _by_block(self, texts: npt.NDArray[np.int64]) -> Any:
        """Group texts that are numbered over all blocks. Yield (block, positions in `texts`, text numbers within the
        block)."""
        order = np.argsort(texts, kind="stable")
        ends = np.cumsum([len(block["hi"]) for block in self._blocks])
        bounds = np.searchsorted(texts[order], np.concatenate(([0], ends)))
        for number, block in enumerate(self._blocks):
            positions = order[bounds[number] : bounds[number + 1]]
            yield block, positions, texts[positions] - (ends[number] - len(block["hi"]))

    def _rows(self, chosen: npt.NDArray[np.int64], cut: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        """Return the first `cut[i]` words of each chosen text i, as ids of the part's dictionary, concatenated."""
        ends = np.cumsum(cut)
        ids = np.empty(int(ends[-1]), np.uint32)
        for block, positions, texts in self._by_block(chosen):
            starts = block["starts"][texts]
            gather(block["mapping"][block["ids"]], starts, cut[positions], ends[positions] - cut[positions], ids)
        return ids

    def _frequencies(self, chosen: npt.NDArray[np.int64], copies: _Copies) -> npt.NDArray[np.int64]:
        """Return how often each word of the part's dictionary occurs in the training copies of the chosen texts."""
        counts = np.zeros(len(self._dictionary), np.int64)
        training = copies.chosen(copies.test == 0)
        for block, positions, texts in self._by_block(chosen[training.text]):
            in_block = np.zeros(len(block["mapping"]), np.int64)
            times = training.times[positions]
            add_counts(block["ids"], block["starts"][texts], block["lengths"][texts], times, in_block)
            counts[block["mapping"]] += in_block
        return counts


def _sums(numbers: npt.NDArray[Any], times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return how often each number 0, 1, 2, ... occurs. `numbers[i]` counts as `times[i]` occurrences."""
    return np.bincount(numbers, times).astype(np.int64)  # np.bincount returns doubles, which are exact up to 2**53
