"""Loops over n-grams, compiled by numba for CPUs. The models fastText and linear use them."""

from typing import Any

import numpy as np
from numba import int64, uint64

from common.compiled import compiled
from corpus.tokens import NGRAM_FACTOR
from trainer.computing.row_kernels import mean_rows

_FACTOR = uint64(NGRAM_FACTOR)


@compiled
def write_features(tokens: Any, begins: Any, lengths: Any, hashes: Any, ngrams: Any, buckets: Any, out: Any) -> None:
    """Write the table rows of n texts to `out`: for each text the rows of its words, and then the rows of its n-grams.

    N-grams are ordered by their first word. `begins` (n,), `lengths` (n,): the first index of each text in `tokens`,
    and its number of words.
    """
    words, at = uint64(len(hashes)), 0
    for text in range(len(lengths)):
        begin = int64(begins[text])
        end = begin + int64(lengths[text])
        for place in range(begin, end):
            out[at] = uint64(tokens[uint64(place)])
            at += 1
        for first in range(begin, end):
            combined = uint64(hashes[uint64(tokens[uint64(first)])])
            for other in range(first + 1, min(end, first + ngrams)):
                combined = combined * _FACTOR + uint64(hashes[uint64(tokens[uint64(other)])])
                out[at] = words + combined % buckets
                at += 1


@compiled
def text_means(
    tokens: Any, ends: Any, lengths: Any, numbers: Any, hashes: Any, ngrams: Any, buckets: Any, table: Any
) -> Any:
    """Return, for each text, the mean of its rows of `table`, and the numbers and the count of these rows.

    The means are (n, columns). The row numbers of all texts are concatenated: (t,) int32. The counts are (n,) int64.
    `numbers` (n,): the indices of the texts. Text i has `lengths[i]` words and ends at `ends[i]` in `tokens`. Each word
    has one row in `table` (rows, columns).
    """
    count = len(numbers)
    begins, words, counts = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    total = 0
    for text in range(count):
        length = int64(lengths[numbers[text]])
        begins[text], words[text], counts[text] = int64(ends[numbers[text]]) - length, length, length
        for far in range(1, ngrams):
            counts[text] += max(length - far, 0)
        total += counts[text]
    ids, means = np.empty(total, np.int32), np.zeros((count, table.shape[1]), table.dtype)
    write_features(tokens, begins, words, hashes, ngrams, buckets, ids)
    mean_rows(table, ids, np.cumsum(counts), means)
    return means, ids, counts


@compiled
def write_known_ngrams(
    tokens: Any, ends: Any, hashes: Any, word_rows: Any, firsts: Any, keys: Any, out: Any, bits: Any
) -> None:
    """Write to `out` (t, n) the table rows of the n-grams of 1 to n words that begin at each of the words `tokens`
    (t,).

    `out` must contain zeros. `ends`: the end of each text in `tokens`. `word_rows`: the row of each single word; the
    row of a longer n-gram is the index of its key in `keys`. `bits`: the shift that turns a key into an index of
    `firsts`, and the factor and the mask that turn a hash into a key.
    """
    shift, spread, mask = bits
    begin, half, last = 0, len(firsts) // 2, len(keys) - 1
    for text in range(len(ends)):
        end = ends[text]
        for first in range(begin, end):
            word = uint64(tokens[uint64(first)])
            out[uint64(first), 0] = word_rows[word]
            combined = uint64(hashes[word])
            for other in range(first + 1, min(end, first + out.shape[1])):
                combined = combined * _FACTOR + uint64(hashes[uint64(tokens[uint64(other)])])
                key = int64(combined * spread & mask)
                at = int64(firsts[(key >> shift) + half])
                while at < last and keys[at] < key:
                    at += 1
                if keys[at] == key:
                    out[uint64(first), uint64(other - first)] = at
        begin = end
