"""Reduces the blocks of one part, from all mappers, to its distinct texts: rules 3 to 8 of docs/dataset.md.

The number of parts grows with the input, so the memory for one part does not. The result must depend on the texts only,
not on the order of the blocks: ids number the words in the order of their first appearance in the rows, sorted by
digest.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pybase64 import b64decode

from corpus.counts import LENGTH_BINS
from corpus.rules import in_test_sets, modal_ratings
from corpus.segments import add_counts, gather, renumber
from corpus.settings import Settings
from corpus.tokenise import Tokeniser
from jobs.arrays import Arrays, unpack_arrays
from jobs.collector import first_of_each, group_numbers

_LAST_BIN = len(LENGTH_BINS) - 1


@dataclass(frozen=True, kw_only=True)
class DistinctTexts:
    """The distinct texts of a part.

    rows: of n texts that keep a word, in the order of their digests: `lengths` (n,) in kept words, at most the row
        length; `codes` (n,) the modal rating or class; `test` (n,); `ids` of the kept words, text after text, which
        count `words` (letters, with a space between) from 0.
    words, frequencies: the kept words of the training texts, as ids of `dictionary`, and how often each is in them
        before they are cut.
    """

    rows: Arrays
    dictionary: Tokeniser
    words: npt.NDArray[np.int64]
    frequencies: npt.NDArray[np.int64]
    counts: Counter[str]


class PartReducer:
    """Collects the blocks of a part and unites them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._tokeniser = Tokeniser()
        self._blocks: list[Arrays] = []

    def add(self, value: bytes) -> None:
        """Add a block of `Collector.blocks`."""
        block = unpack_arrays(b64decode(value, validate=True))
        block["mapping"] = self._tokeniser.add(block.pop("words").tobytes())
        block["lengths"] = block["lengths"].astype(np.int64)
        block["starts"] = np.cumsum(block["lengths"]) - block["lengths"]
        self._blocks.append(block)

    def unite(self) -> DistinctTexts:
        """The distinct texts of all blocks."""
        high, low, lengths, tests = (self._all(name) for name in ("hi", "lo", "lengths", "test"))
        order = np.lexsort((low, high))
        firsts = first_of_each(high[order], low[order])
        group = np.empty(len(order), np.int64)
        group[order] = group_numbers(firsts, len(order))
        chosen = order[firsts]
        codes, conflicting = modal_ratings(group[self._texts()], self._all("code"), self._all("times"))
        lengths = lengths[chosen]
        if self._settings.test_input:
            test = np.maximum.reduceat(tests[order], firsts)
        else:
            test = in_test_sets(high[chosen], self._settings.test_share)

        has_row = lengths > 0
        cut = np.minimum(lengths, self._settings.row_length)
        ids = self._rows(chosen, cut)
        words = np.empty(len(self._tokeniser), np.int64)
        known = renumber(ids, np.full(len(self._tokeniser), -1, np.int64), words)
        frequencies = self._frequencies(chosen[test == 0])
        used = np.flatnonzero(frequencies)
        counts = Counter(
            distinct=len(chosen),
            conflicting=int(conflicting.sum()),
            wordless=int((~has_row).sum()),
            train=int((has_row & (test == 0)).sum()),
            test=int((has_row & (test == 1)).sum()),
            cut=int((lengths > self._settings.row_length).sum()),
        )
        for code, count in enumerate(np.bincount(codes).tolist()):
            counts[f"codes.after.{code}"] = count
        powers = np.frexp(lengths[has_row])[1] - 1  # of two, at most as large as the length
        for power, count in enumerate(np.bincount(np.minimum(powers, _LAST_BIN)).tolist()):
            counts[f"lengths.{LENGTH_BINS[power]}"] = count
        return DistinctTexts(
            rows={
                "lengths": cut[has_row].astype(np.uint16),
                "codes": codes[has_row],
                "test": test[has_row],
                "ids": ids.astype(np.uint16) if known <= 1 << 16 else ids,
                "words": np.frombuffer(self._tokeniser.join_words(words[:known]), np.uint8),
            },
            dictionary=self._tokeniser,
            words=used,
            frequencies=frequencies[used],
            counts=counts,
        )

    def _all(self, name: str) -> npt.NDArray[Any]:
        return np.concatenate([block[name] for block in self._blocks])

    def _texts(self) -> npt.NDArray[np.int64]:
        """The texts of the entries of `code` and `times`, numbered over all blocks."""
        sizes = [len(block["hi"]) for block in self._blocks]
        before = np.cumsum(sizes) - sizes
        return np.concatenate([block["text"] + start for block, start in zip(self._blocks, before, strict=True)])

    def _by_block(self, texts: npt.NDArray[np.int64]) -> Any:
        """(block, positions in `texts`, their numbers in the block) of texts numbered over all blocks."""
        order = np.argsort(texts, kind="stable")
        ends = np.cumsum([len(block["hi"]) for block in self._blocks])
        bounds = np.searchsorted(texts[order], np.concatenate(([0], ends)))
        for number, block in enumerate(self._blocks):
            positions = order[bounds[number] : bounds[number + 1]]
            yield block, positions, texts[positions] - (ends[number] - len(block["hi"]))

    def _rows(self, chosen: npt.NDArray[np.int64], cut: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        """The first words of the chosen texts as ids of the part's dictionary, one text after the other."""
        ends = np.cumsum(cut)
        ids = np.empty(int(ends[-1]), np.uint32)
        for block, positions, texts in self._by_block(chosen):
            starts = block["starts"][texts]
            gather(block["mapping"][block["ids"]], starts, cut[positions], ends[positions] - cut[positions], ids)
        return ids

    def _frequencies(self, training: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """How often each word of the part's dictionary is in the training texts."""
        counts = np.zeros(len(self._tokeniser), np.int64)
        for block, _, texts in self._by_block(training):
            in_block = np.zeros(len(block["mapping"]), np.int64)
            add_counts(block["ids"], block["starts"][texts], block["lengths"][texts], in_block)
            counts[block["mapping"]] += in_block
        return counts
