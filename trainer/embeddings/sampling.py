"""Random choices of skip-gram: subsampling of words, window sizes, and negative samples.

All of them are hashes of seed, step and row. They depend neither on the number of ranks, nor on the split, nor on the
other rows of a batch.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from corpus.text import FIRST_WORD

Counts = npt.NDArray[np.int64]
Tokens = npt.NDArray[np.int32]
"""(rows, tokens) int32: word ids; 0 at the end of a line, 1 for a word without a vector."""

SHARED = 32
"""Negative samples of a row, shared by all of its pairs, so that a row's pairs are products of small matrices.

Each is weighted so that the samples together count as the negative samples of a pair (pSGNScc: Rengasamy et al. 2017).
With 32, as many analogies are answered as with separate samples for each pair; with 16, a tenth fewer.
"""

STEADY = 10.0
"""Expected occurrences of a word in a batch above which its gradient is scaled down to this number of occurrences.

All gradients of a batch are computed for the same vector. Their sum would move a frequent word's vector far beyond the
optimum of a single one. With 10, batches of 8 to 64 rows learn equally well; with 20, batches of 64 rows diverge.
"""

_NOISE_PLACES = 1 << 22
_NOISE_POWER = 0.75
"""Exponent of word counts for drawing negative samples, as in word2vec."""
_KEPT_BITS = 24


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Sampling distributions for a vocabulary of V words, with ids from FIRST_WORD."""

    keep: npt.NDArray[np.uint64]
    """(FIRST_WORD + V,): number of occurrences to keep out of 2**24, for each word."""
    noise: npt.NDArray[np.int32]
    """Table of ids; each id occurs in proportion to its sampling probability."""
    expected: npt.NDArray[np.float32]
    """(2, FIRST_WORD + V): expected occurrences of a word in a row, as a centre, and as a context or negative sample.
    """
    window: int
    negatives: int
    """Negative samples per pair."""

    def steadiness(self, rows: int, *, steady: float = STEADY, least: float = 0.0) -> npt.NDArray[np.float32] | None:
        """Return the factors (2, FIRST_WORD + V) of the gradients of centres and contexts in a batch of `rows` rows.

        A factor is at least `least`, and 1 for words with at most `steady` expected occurrences. Returns None if all
        are 1.
        """
        factors = np.clip(steady / np.maximum(rows * self.expected, steady), least, 1.0).astype(np.float32)
        return None if (factors == 1.0).all() else factors


def sampling(counts: Counts, *, rows: float, window: int, negatives: int, subsample: float) -> Sampling:
    """Return the sampling for words with `counts` (V,), all above 0, in `rows` rows of text; see `EmbeddingOptions`.

    An occurrence of a word with frequency f is kept with probability sqrt(s / f) + s / f for `subsample` s, as in
    word2vec.
    """
    share = (subsample or np.inf) * counts.sum() / counts
    kept = np.minimum(1.0, np.sqrt(share) + share)
    weights = counts.astype(np.float64) ** _NOISE_POWER
    ends = np.rint(np.cumsum(weights) * (max(_NOISE_PLACES, len(counts)) / weights.sum())).astype(np.int64)
    ids = np.arange(FIRST_WORD, FIRST_WORD + len(counts), dtype=np.int32)
    as_centres = counts * kept / rows
    first, end = FIRST_WORD, FIRST_WORD + len(counts)
    keep, expected = np.zeros(end, np.uint64), np.zeros((2, end), np.float32)
    keep[first:end] = kept * (1 << _KEPT_BITS)
    expected[:, first:end] = as_centres, as_centres + SHARED * weights / weights.sum()
    return Sampling(
        expected=expected,
        keep=keep,
        noise=np.repeat(ids, np.diff(ends, prepend=0)),
        window=window,
        negatives=negatives,
    )
