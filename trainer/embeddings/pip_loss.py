"""PIP loss: distance between the inner products of word vectors and the co-occurrence counts of their text.

    PIP loss = || E E' - M ||, the square root of the sum of all squared entries (Frobenius norm).

E (words, size) has one vector per row. E E' are their pairwise inner products (PIP), which no rotation of the vectors
changes (Yin and Shen 2018, "On the Dimensionality of Word Embedding", section 3). The reference M is the shifted
positive pointwise mutual information of the words. Skip-gram with k negative samples factorises it (Levy and Goldberg
2014, "Neural Word Embedding as Implicit Matrix Factorization", sections 3 and 4):

    M[i, j] = max(0, log(n(i, j) N / (n(i) n(j))) - log k),

with n(i, j) the co-occurrences of two words, n(i) the sum of a row, and N the sum of all entries. Yin and Shen use the
matrix E E' of the best vectors as the reference. These are U D^(1/2) of M = U D U', and their matrix is M without its
negative eigenvalues, which no vectors can represent. M itself is sparse, so it is used instead; the loss on real text
is therefore never 0.

The loss grows with the number of words, the counts of the text and k, so compare only losses for which these are equal.
It also depends on the length of vectors, which grows during training; similarity and analogies do not. So there are two
further measures: one independent of the number of words, and one independent of lengths.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corpus.text import FIRST_WORD, PADDING

IntArray = npt.NDArray[np.int64]

_COUNTED_PAIRS = 1 << 20
"""Approximate number of pairs that are counted at once."""


class Pairs(NamedTuple):
    """Nonzero entries of the upper triangle of a symmetric matrix (words, words)."""

    words: int
    one: npt.NDArray[np.int32]
    """(n,): row of each entry, in ascending order."""
    other: npt.NDArray[np.int32]
    """(n,): column of each entry, at least its row; ascending within a row."""
    values: npt.NDArray[np.float64]
    """(n,)"""

    @property
    def times(self) -> npt.NDArray[np.float64]:
        """(n,): number of occurrences of each entry in the whole matrix: 1 on the diagonal, else 2."""
        return np.where(self.one == self.other, 1.0, 2.0)


def cooccurrences(tokens: npt.NDArray[np.int32], *, words: int, window: int) -> Pairs:
    """Return how often two words occur at most `window` places apart. Needs at most 130 bytes per distinct pair, plus
    64 MiB.

    `tokens` (rows, width): ids, possibly memory-mapped. 0 ends a line; no pair crosses lines or rows. 1 is an unknown
    word, which is removed first. The id of word w is w + 2. Only the first `words` words of the vocabulary count; other
    words are removed, too. A pair of equal words is counted from both places.
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
    """Yield the pairs (n,) of blocks of rows. A pair of words one <= other has the key one * words + other."""
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
    """Return the distinct keys, ascending, and the sums of their counts."""
    keys, counts = map(np.concatenate, zip(*counted, strict=True))
    order = keys.argsort(kind="stable")  # merges runs that are already sorted
    keys, counts = keys[order], counts[order]
    begins = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[begins], np.add.reduceat(counts, begins) if len(begins) else counts


_BLOCK_PAIRS = 1 << 10
"""Pairs with vectors that fit into a processor's cache at once."""


class PipLoss(NamedTuple):
    """Distance of vectors from the reference."""

    loss: float
    """|| E E' - M ||."""
    mean_square: float
    """Mean square of all entries of E E' - M. Vectors drawn from N(0, 1) start at about their number of dimensions."""
    cosine: float
    """Cosine of E E' and M as vectors of all entries: 1 if they are proportional, about 0 if they are unrelated."""


def sppmi(counts: Pairs, *, negatives: int) -> Pairs:
    """Return the shifted positive pointwise mutual information of words from their co-occurrences. `negatives`: k."""
    one, other = counts.one, counts.other
    halves = counts.values * (one != other)
    sums = np.bincount(one, counts.values, counts.words) + np.bincount(other, halves, counts.words)
    found = np.log(counts.values * sums.sum() / (sums[one] * sums[other])) - math.log(negatives)
    above = found > 0
    return Pairs(counts.words, one[above], other[above], found[above])


def pip_loss(vectors: npt.NDArray[np.floating], reference: Pairs) -> PipLoss:
    """Return the loss of `vectors` (n, size) for `reference`, a result of `sppmi`.

    The first vectors are those of the words in `reference`; n is at least their number. Neither matrix is ever dense in
    memory: || E E' || equals || E' E ||, which has (size, size) entries.
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
