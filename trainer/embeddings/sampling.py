"""The random choices of skip-gram: subsampling of words, window sizes, and negative samples.

All of it follows from seed, step and row by a hash. The number of ranks, the split and the rows beside a row change
nothing.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from corpus.text import FIRST_WORD

Counts = npt.NDArray[np.int64]
Tokens = npt.NDArray[np.int32]
"""(rows, tokens): ids, 0 at the end of a line, 1 for a word without a vector."""

SHARED = 32
"""Negative samples of a row of a text, shared by all of its pairs. Each is weighted so that they count as the negative
samples of a pair. So a row's pairs are products of small matrices (pSGNScc: Rengasamy et al. 2017). With 32 as many
analogies are answered as with samples of its own for each pair, with 16 a tenth fewer."""

STEADY = 10.0
"""A step of SGD on a batch in which a word is expected more often takes the gradient of its vectors so many times
instead of each time. All of these gradients were found for one vector: added up, they would throw a frequent word's far
beyond where the first of them led. Batches of 8 to 64 rows then learn the same; 20 let batches of 64 rows diverge."""

_NOISE_PLACES = 1 << 22
_NOISE_POWER = 0.75
"""Negative samples are drawn in proportion to this power of a word's count, as word2vec draws them."""
_KEPT_BITS = 24


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """The sampling distributions for a vocabulary of V words, with ids from FIRST_WORD."""

    keep: npt.NDArray[np.uint64]
    """(FIRST_WORD + V,): how many of 2**24 occurrences of a word are kept."""
    noise: npt.NDArray[np.int32]
    """Each id as often as it is to be sampled."""
    expected: npt.NDArray[np.float32]
    """(2, FIRST_WORD + V): how often a word is expected as a centre in a row, and as a context or negative sample."""
    window: int
    negatives: int
    """Negative samples a pair."""

    def steadiness(self, rows: int, *, steady: float = STEADY, least: float = 0.0) -> npt.NDArray[np.float32] | None:
        """(2, FIRST_WORD + V): the factors of the gradients of centres and contexts in a batch of so many rows, which
        are `least` or more: 1 for words that are to occur `steady` times or less. None if all are 1."""
        factors = np.clip(steady / np.maximum(rows * self.expected, steady), least, 1.0).astype(np.float32)
        return None if (factors == 1.0).all() else factors


def sampling(counts: Counts, *, rows: float, window: int, negatives: int, subsample: float) -> Sampling:
    """The rules for words with these `counts` (V,), all above 0, in so many rows of text; see `EmbeddingOptions`.

    An occurrence of a word with the share f of the text is kept with the probability sqrt(s / f) + s / f for a
    `subsample` of s, as the word2vec program does.
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
