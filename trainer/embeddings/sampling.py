"""Random choices of skip-gram: subsampling of words, window sizes, and negative samples.

All of these choices are hashes of seed, step and row number. They depend neither on the number of ranks, nor on the
split, nor on the other rows of a batch.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from corpus.text import FIRST_WORD

Counts = npt.NDArray[np.int64]
Tokens = npt.NDArray[np.int32]
"""(rows, tokens) int32: word ids; 0 at the end of a line, 1 for a word without a vector."""

SHARED = 32
"""Number of negative samples per row. All pairs of a row share them, so that products of small matrices compute all
scores of a row.

The samples are weighted so that together they count as the negative samples of each pair (pSGNScc: Rengasamy et al.
2017). With 32 samples, as many analogies are answered correctly as with separate samples for each pair; with 16
samples, a tenth fewer.
"""

STEADY = 10.0
"""Threshold of a word's expected occurrences in a batch. The gradients of more frequent words are scaled down, as if
they occurred this often.

All gradients of a batch are computed for the same value of a vector. For a frequent word, the sum of these gradients
would move the vector far beyond the optimum. With threshold 10, batches of 8 to 64 rows learn equally well; with 20,
batches of 64 rows diverge.
"""

_NOISE_PLACES = 1 << 22
_NOISE_POWER = 0.75
"""Exponent of the word counts in the distribution of negative samples, as in word2vec."""
_KEPT_BITS = 24


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Sampling distributions for a vocabulary of V words, with ids from FIRST_WORD."""

    keep: npt.NDArray[np.uint64]
    """(FIRST_WORD + V,): how many of 2**24 occurrences of each word are kept by subsampling."""
    noise: npt.NDArray[np.int32]
    """Table from which negative samples are drawn: each id occurs in proportion to its sampling probability."""
    expected: npt.NDArray[np.float32]
    """(2, FIRST_WORD + V): expected number of occurrences of each word in a row: as a centre, and as a context or a
    negative sample."""
    window: int
    negatives: int
    """Number of negative samples per pair."""

    def steadiness(self, rows: int, *, steady: float = STEADY, least: float = 0.0) -> npt.NDArray[np.float32] | None:
        """Return factors (2, FIRST_WORD + V) for the gradients of centres and contexts in a batch of `rows` rows.

        The factor is 1 for a word with at most `steady` expected occurrences. For more frequent words, it scales the
        gradients down to `steady` occurrences, but it is at least `least`. Returns None if all factors are 1.
        """
        factors = np.clip(steady / np.maximum(rows * self.expected, steady), least, 1.0).astype(np.float32)
        return None if (factors == 1.0).all() else factors


def sampling(counts: Counts, *, rows: float, window: int, negatives: int, subsample: float) -> Sampling:
    """Return the sampling distributions for a text of `rows` rows, with `counts` (V,) of its words, at least 1 each.

    `window`, `negatives` and `subsample` are explained in `EmbeddingOptions`. As in word2vec, an occurrence of a word
    with relative frequency f is kept with probability sqrt(s / f) + s / f, where s is `subsample`.
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
