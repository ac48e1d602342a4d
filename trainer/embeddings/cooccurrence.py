"""Which words stand near which, how often: the counts that word embeddings are a factorisation of.

The counts are those of a symmetric matrix (words, words), of which few entries are not zero. Only these are kept, and
of each two that are equal one. The pairs of a block of tokens are counted by sorting, and merged into those before once
they are as many: so each pair is merged few times, however much text there is. In memory are at most 130 bytes a
distinct pair, and 64 MiB for the block.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corpus.text import FIRST_WORD, PADDING

IntArray = npt.NDArray[np.int64]

_BLOCK_PAIRS = 1 << 20
"""Pairs that are counted at once, about."""


class Pairs(NamedTuple):
    """The entries of a symmetric matrix (words, words) that are not zero, of each two that are equal one."""

    words: int
    one: npt.NDArray[np.int32]
    """(n,): the row of each entry, in ascending order."""
    other: npt.NDArray[np.int32]
    """(n,): its column, not below its row; those of a row ascend."""
    values: npt.NDArray[np.float64]
    """(n,)"""

    @property
    def times(self) -> npt.NDArray[np.float64]:
        """(n,): how often each entry stands in the whole matrix: twice, on the diagonal once."""
        return np.where(self.one == self.other, 1.0, 2.0)


def cooccurrences(tokens: npt.NDArray[np.int32], *, words: int, window: int) -> Pairs:
    """How often each word stands at most `window` places before or after each other one.

    `tokens` (rows, width): ids, which may lie on a disk: 0 ends a line, and no pair crosses lines or rows; 1 is an
    unknown word, and is left out as if it were not there. The id of word w is w + 2. Of the vocabulary only the first
    `words` words count; the others are left out, too. A word that stands near itself is counted from both places.
    """
    total = (np.empty(0, np.int64), np.empty(0, np.int64))
    pending, waiting = [total], 0
    for keys in _blocks(tokens, words, window):
        pending.append(np.unique(keys, return_counts=True))
        waiting += len(pending[-1][0])
        if waiting > max(len(pending[0][0]), _BLOCK_PAIRS):
            pending, waiting = [_merged(pending)], 0
    keys, counts = _merged(pending)
    one, other = np.divmod(keys, words)
    values = counts * (1 + (one == other))
    return Pairs(words, one.astype(np.int32), other.astype(np.int32), values.astype(np.float64))


def _blocks(tokens: npt.NDArray[np.int32], words: int, window: int) -> Iterator[IntArray]:
    """Some rows after the other, the pairs in them (n,): a pair of the words one <= other is one * words + other."""
    rows = max(1, _BLOCK_PAIRS // max(1, tokens.shape[1] * window))
    for begin in range(0, len(tokens), rows):
        block = np.pad(tokens[begin : begin + rows], ((0, 0), (0, 1)), constant_values=PADDING).ravel()
        lines = np.cumsum(block == PADDING)
        known = (block >= FIRST_WORD) & (block < FIRST_WORD + words)
        found, lines = block[known].astype(np.int64) - FIRST_WORD, lines[known]
        near = [(found[:-far], found[far:], lines[:-far] == lines[far:]) for far in range(1, window + 1)]
        keys = [np.minimum(one, other)[same] * words + np.maximum(one, other)[same] for one, other, same in near]
        yield np.concatenate(keys)


def _merged(counted: list[tuple[IntArray, IntArray]]) -> tuple[IntArray, IntArray]:
    """The distinct ones of some ascending keys, ascending, and the sums of their counts."""
    keys, counts = map(np.concatenate, zip(*counted, strict=True))
    order = keys.argsort(kind="stable")  # of runs that ascend it merges
    keys, counts = keys[order], counts[order]
    begins = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[begins], np.add.reduceat(counts, begins) if len(begins) else counts
