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
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trainer.embeddings.cooccurrence import Pairs

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
