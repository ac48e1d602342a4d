"""PIP loss: distance between the inner products of word vectors and the co-occurrence counts of their text.

    PIP loss = || E E' - M ||, the square root of the sum of all squared entries (Frobenius norm).

E (words, size) has one vector per row. E E' contains the pairwise inner products (PIP) of the vectors. These products
do not change if the vectors are rotated (Yin and Shen 2018, "On the Dimensionality of Word Embedding", section 3). The
reference M is the shifted positive pointwise mutual information of the words. Skip-gram with k negative samples
factorises M (Levy and Goldberg 2014, "Neural Word Embedding as Implicit Matrix Factorization", sections 3 and 4):

    M[i, j] = max(0, log(n(i, j) N / (n(i) n(j))) - log k),

with n(i, j) the number of co-occurrences of two words, n(i) the sum of row i of n, and N the sum of all entries of n.

Yin and Shen use the matrix E E' of the best vectors as the reference. The best vectors are U D^(1/2) of M = U D U'.
Their matrix E E' is M without its negative eigenvalues, which no vectors can represent. Here M itself is the reference,
because it is sparse. The loss on real text is therefore never 0.

The loss grows with the number of words, the counts of the text and k, so compare losses only if these are equal. The
loss also depends on the lengths of the vectors, which grow during training. PipLoss therefore has two further measures:
one is independent of the number of words, and one is independent of the lengths.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corpus.text import FIRST_WORD, PADDING

IntArray = npt.NDArray[np.int64]

_COUNTED_PAIRS = 1 << 20
"""Approximate number of word pairs that are counted at once."""


class Pairs(NamedTuple):
    """Nonzero entries of the upper triangle of a symmetric matrix (words, words)."""

    words: int
    one: npt.NDArray[np.int32]
    """(n,): row index of each entry, in ascending order."""
    other: npt.NDArray[np.int32]
    """(n,): column index of each entry, at least its row index; in ascending order within a row."""
    values: npt.NDArray[np.float64]
    """(n,): value of each entry."""


def cooccurrences(tokens: npt.NDArray[np.int32], *, words: int, window: int) -> Pairs:
    """Return how often each pair of words occurs with a distance of at most `window`.

    `tokens` (rows, width): ids, possibly memory-mapped. Id 0 ends a line; a pair is always within one line and one row.
    Id 1 is an unknown word. The id of word w is w + 2. Unknown words, and words after the first `words` of the
    vocabulary, are removed before distances are measured. A pair of two occurrences of the same word counts twice. The
    function needs at most 130 bytes of memory per distinct pair, plus 64 MiB.
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
    """Yield the keys (n,) of all pairs in each block of rows. The key of two words is one * words + other, where one <=
    other."""
    rows = max(1, _COUNTED_PAIRS // max(1, tokens.shape[1] * window))
    for begin in range(0, len(tokens), rows):
        block = np.pad(tokens[begin : begin + rows], ((0, 0), (0, 1)), constant_values=PADDING).ravel()
        lines = np.cumsum(block == PADDING)
        known = (block >= FIRST_WORD) & (block < FIRST_WORD + words)
        words_of_block, lines = block[known].astype(np.int64) - FIRST_WORD, lines[known]
        near = [
            (words_of_block[:-far], words_of_block[far:], lines[:-far] == lines[far:]) for far in range(1, window + 1)
        ]
        keys = [np.minimum(one, other)[same] * words + np.maximum(one, other)[same] for one, other, same in near]
        yield np.concatenate(keys)


def _merged(counted: list[tuple[IntArray, IntArray]]) -> tuple[IntArray, IntArray]:
    """Return the distinct keys, in ascending order, and the sum of the counts of each key."""
    keys, counts = map(np.concatenate, zip(*counted, strict=True))
    order = keys.argsort(kind="stable")  # fast, because it only merges sequences that are sorted already
    keys, counts = keys[order], counts[order]
    begins = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[begins], np.add.reduceat(counts, begins) if len(begins) else counts


_BLOCK_PAIRS = 1 << 10
"""Number of pairs that are computed at once, so that their vectors fit into a processor's cache."""


class PipLoss(NamedTuple):
    """Distance between word vectors and the reference."""

    loss: float
    """PIP loss || E E' - M ||."""
    mean_square: float
    """Mean square of the entries of E E' - M. For vectors drawn from N(0, 1), it is about their number of
    dimensions."""
    cosine: float
    """Cosine between all entries of E E' and those of M: 1 if the matrices are proportional, about 0 if unrelated."""


def sppmi(counts: Pairs, *, negatives: int) -> Pairs:
    """Return the matrix M of the PIP loss: the shifted positive pointwise mutual information of words.

    `counts`: a result of `cooccurrences`. `negatives`: the number k of negative samples.
    """
    one, other = counts.one, counts.other
    halves = counts.values * (one != other)
    sums = np.bincount(one, counts.values, counts.words) + np.bincount(other, halves, counts.words)
    information = np.log(counts.values * sums.sum() / (sums[one] * sums[other])) - math.log(negatives)
    above = information > 0
    return Pairs(counts.words, one[above], other[above], information[above])


def pip_loss(vectors: npt.NDArray[np.floating], reference: Pairs) -> PipLoss:
    """Return the PIP loss of `vectors` (n, size) for `reference`, a result of `sppmi`.

    The first rows of `vectors` must be the vectors of the words in `reference`, in the same order. Neither E E' nor M
    is ever a dense matrix in memory, because || E E' || equals || E' E ||, and E' E is only (size, size).
    """
    rows = vectors[: reference.words]
    weights = np.where(reference.one == reference.other, 1.0, 2.0) * reference.values  # both triangles of the matrix
    product = 0.0  # the sum of M[i, j] (E E')[i, j] over all i and j
    for begin in range(0, len(weights), _BLOCK_PAIRS):
        some = slice(begin, begin + _BLOCK_PAIRS)
        product += weights[some] @ np.einsum("nd,nd->n", rows[reference.one[some]], rows[reference.other[some]])
    of_reference = weights @ reference.values
    exact = rows.astype(np.float64)
    of_vectors = np.square(exact.T @ exact).sum()
    square = max(0.0, float(of_reference - 2 * product + of_vectors))
    norms = math.sqrt(of_reference * of_vectors)
    return PipLoss(math.sqrt(square), square / reference.words**2, float(product / norms) if norms else 0.0)
