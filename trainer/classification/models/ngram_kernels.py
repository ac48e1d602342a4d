"""The loop of `ngrams.features`, compiled by numba."""

from typing import Any

from numba import uint64

from corpus.compiled import compiled
from corpus.tokens import NGRAM_FACTOR

_FACTOR = uint64(NGRAM_FACTOR)


@compiled
def write_features(
    tokens: Any, lengths: Any, hashes: Any, rows: Any, starts: Any, ngrams: Any, buckets: Any, out: Any
) -> None:
    """Write the rows of all texts to `out`: of each text those of its words, then its n-grams by their first word.

    `rows`, `starts`: the arrays of `WordRows`; or None, where numba compiles a loop for words of one row each.
    """
    words, at, begin = uint64(len(hashes)), 0, 0
    for text in range(len(lengths)):
        end = begin + lengths[text]
        for place in range(begin, end):
            word = uint64(tokens[uint64(place)])
            if rows is None:
                out[at] = word
                at += 1
            else:
                for row in range(uint64(starts[word]), uint64(starts[word + uint64(1)])):
                    out[at] = rows[row]
                    at += 1
        for first in range(begin, end):
            found = uint64(hashes[uint64(tokens[uint64(first)])])
            for other in range(first + 1, min(end, first + ngrams)):
                found = found * _FACTOR + uint64(hashes[uint64(tokens[uint64(other)])])
                out[at] = words + found % buckets
                at += 1
        begin = end
