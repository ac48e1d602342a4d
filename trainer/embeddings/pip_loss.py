"""PIP loss: how far the inner products of word vectors are from what the counts of their text say.

    PIP loss = || E E' - M ||, the root of the sum of the squares of all entries,

where E (words, size) has a vector a row, and E E' are their pairwise inner products (PIP), which no rotation of the
vectors changes (Yin and Shen 2018, "On the Dimensionality of Word Embedding", section 3). The reference M is the
shifted positive pointwise mutual information of the words, which skip-gram with k negative samples factorises (Levy
and Goldberg 2014, "Neural Word Embedding as Implicit Matrix Factorization", sections 3 and 4):

    M[i, j] = max(0, log(n(i, j) N / (n(i) n(j))) - log k),

with n(i, j) the co-occurrences of two words, n(i) the sum of a row, and N that of all. For Yin and Shen the reference
is the matrix E E' of the best vectors. These are U D^(1/2) of M = U D U', and their matrix is M itself, but for its
eigenvalues below 0, which no vectors have: so M, which is sparse, stands for it, and no loss is 0 on real text.

A loss grows with the number of words, the counts of the text and k, so losses compare only where these are the same. It
also knows how long vectors are, as training makes them ever longer, and similarity and analogies do not. So there are
two more figures: one without the number of words, and one without lengths.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corpus.text import FIRST_WORD, PADDING

IntArray = npt.NDArray[np.int64]

_COUNTED_PAIRS = 1 << 20
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
    """How often each word stands at most `window` places before or after each other one; takes at most 130 bytes a
    distinct pair, and 64 MiB.

    `tokens` (rows, width): ids, which may lie on a disk: 0 ends a line, and no pair crosses lines or rows; 1 is an
    unknown word, and is left out as if it were not there. The id of word w is w + 2. Of the vocabulary only the first
    `words` words count; the others are left out, too. A word that stands near itself is counted from both places.
    """
    total = (np.empty(0, np.int64), np.empty(0, np.int64))
    pending, waiting = [total], 0
    for keys in _blocks(tokens, words, window):
        pending.append(np.unique(keys, return_counts=True))
        waiting += len(pending[-1][0])
        if waiting > max(len(pending[0][0]), _COUNTED_PAIRS):
            pending, waiting = [_merged(pending)], 0
    keys, counts = _merged(pending)
    one, other = np.divmod(keys, words)
    values = counts * (1 + (one == other))
    return Pairs(words, one.astype(np.int32), other.astype(np.int32), values.astype(np.float64))


def _blocks(tokens: npt.NDArray[np.int32], words: int, window: int) -> Iterator[IntArray]:
    """Some rows after the other, the pairs in them (n,): a pair of the words one <= other is one * words + other."""
    rows = max(1, _COUNTED_PAIRS // max(1, tokens.shape[1] * window))
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


_BLOCK_PAIRS = 1 << 10
"""Pairs whose vectors are in a processor's cache at once."""


class PipLoss(NamedTuple):
    """How far vectors are from the reference."""

    loss: float
    """|| E E' - M ||."""
    mean_square: float
    """The mean square of all entries of E E' - M. Vectors of N(0, 1) begin at about their size."""
    cosine: float
    """The cosine of E E' and M, each as one vector of all its entries: 1 where they differ by a factor alone, about 0
    where the vectors say nothing about M."""


def sppmi(counts: Pairs, *, negatives: int) -> Pairs:
    """The shifted positive pointwise mutual information of words by their co-occurrences; `negatives` is k."""
    one, other = counts.one, counts.other
    halves = counts.values * (one != other)
    sums = np.bincount(one, counts.values, counts.words) + np.bincount(other, halves, counts.words)
    found = np.log(counts.values * sums.sum() / (sums[one] * sums[other])) - math.log(negatives)
    above = found > 0
    return Pairs(counts.words, one[above], other[above], found[above])


def pip_loss(vectors: npt.NDArray[np.floating], reference: Pairs) -> PipLoss:
    """The loss of `vectors` (n, size), of which the first belong to the words of `reference`, a matrix that `sppmi`
    returns; n is at least their number.

    Neither matrix is ever whole in memory: || E E' || is || E' E ||, which has (size, size) entries.
    """
    rows, weights = vectors[: reference.words], reference.values * reference.times
    product = 0.0  # the sum of M[i, j] (E E')[i, j]
    for begin in range(0, len(weights), _BLOCK_PAIRS):
        some = slice(begin, begin + _BLOCK_PAIRS)
        product += weights[some] @ np.einsum("nd,nd->n", rows[reference.one[some]], rows[reference.other[some]])
    of_reference = weights @ reference.values
    exact = rows.astype(np.float64)
    of_vectors = np.square(exact.T @ exact).sum()
    square = max(0.0, float(of_reference - 2 * product + of_vectors))
    norms = math.sqrt(of_reference * of_vectors)
    return PipLoss(math.sqrt(square), square / reference.words**2, float(product / norms) if norms else 0.0)
