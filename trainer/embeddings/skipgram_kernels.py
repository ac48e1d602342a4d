"""Loops of skip-gram, compiled by numba for CPUs. skipgram.py calls them and defines what they compute.

The vectors of a row's words are copied to contiguous memory, and their gradients are summed there, because each word
belongs to many pairs. Then these gradients are added to the gradients of the piece, which contain each word once.
"""

from functools import partial
from typing import Any

import numpy as np
from numba import int64, njit, uint64

from common.compiled import compiled

_MOST_FACTORS = 16
"""Largest number of probabilities that are multiplied before the logarithm is taken. With more factors, the product
could underflow, because a probability can be as small as e**-30."""


@compiled
def mixed(number: Any) -> Any:
    """Return a hash of a 64-bit number, computed by the last steps of SplitMix64 (Steele et al. 2014)."""
    number = (number ^ (number >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> uint64(27))) * uint64(0x94D049BB133111EB)
    return number ^ (number >> uint64(31))


@compiled
def keep_words(row: Any, key: Any, keep: Any, window: Any, words: Any, lines: Any, reaches: Any) -> Any:
    """Write the words that subsampling keeps in a row (tokens,) to `words`.

    Also write their line numbers to `lines`, and their window sizes to `reaches`. Returns the number of kept words.
    """
    kept, line = 0, 0
    for place in range(len(row)):
        word = row[place]
        if word == 0:
            line += 1
        elif word > 1:
            drawn = mixed(key + uint64(place + 1) * uint64(0x9E3779B97F4A7C15))
            if (drawn >> uint64(40)) < keep[word]:
                words[kept], lines[kept] = word, line
                reaches[kept] = 1 + int64(((drawn & uint64(0xFFFFFFFF)) * uint64(window)) >> uint64(32))
                kept += 1
    return kept


@compiled
def draw_negatives(key: Any, noise: Any, negatives: Any) -> None:
    """Write negative samples to `negatives` (shared,), drawn from `noise`, which has each id in proportion to its
    sampling probability."""
    for number in range(len(negatives)):
        drawn = mixed(key ^ (uint64(number + 1) * uint64(0xD1342543DE82EF95)))
        negatives[number] = noise[((drawn >> uint64(32)) * uint64(len(noise))) >> uint64(32)]


@njit(inline="always")
def _probabilities(score: Any) -> Any:
    """Return the probability that two words occur together, and that they do not. `score`: their inner product."""
    score = min(max(score, np.float32(-30.0)), np.float32(30.0))
    small = np.exp(-abs(score))
    likely, unlikely = np.float32(1.0) / (np.float32(1.0) + small), small / (np.float32(1.0) + small)
    return (likely, unlikely) if score > 0 else (unlikely, likely)


@njit(inline="always")
def _learn_pair(centres: Any, centre: Any, contexts: Any, context: Any, by_centres: Any, by_contexts: Any) -> Any:
    """Add the gradients of one pair. Return the probability of the pair; the loss is its -log."""
    columns, score = uint64(centres.shape[1]), np.float32(0.0)
    for column in range(columns):
        score += centres[centre, column] * contexts[context, column]
    right, wrong = _probabilities(score)
    for column in range(columns):
        by_centres[centre, column] -= wrong * contexts[context, column]
        by_contexts[context, column] -= wrong * centres[centre, column]
    return right


@compiled
def _collect(words: Any, count: Any, gradients: Any, places: Any, touched: Any, sums: Any, known: Any) -> Any:
    """Add the `gradients` of the first `count` entries of `words` to `sums`, which has one row per distinct word.

    `places` (rows of the table,): the index of each word in `sums`, or -1. `touched`: the words in `sums`. `known`: the
    number of distinct words before this call. Returns the number of distinct words after it.
    """
    columns = uint64(gradients.shape[1])
    for number in range(count):
        place = places[words[number]]
        if place < 0:
            place, touched[known], places[words[number]] = known, words[number], known
            known += 1
            for column in range(columns):
                sums[uint64(place), column] = gradients[uint64(number), column]
        else:
            for column in range(columns):
                sums[uint64(place), column] += gradients[uint64(number), column]
    return known


@njit(inline="always")
def _learn_pairs(
    count: Any, lines: Any, reaches: Any, centres: Any, contexts: Any, by_centres: Any, by_contexts: Any, degrees: Any
) -> Any:
    """Add the gradients of a row's pairs, and write the number of each centre's contexts to `degrees`.

    Returns the loss of the pairs, without negative samples.
    """
    loss = 0.0
    for place in range(count):
        product, degrees[place] = 1.0, 0
        for other in range(max(0, place - reaches[place]), min(count, place + reaches[place] + 1)):
            if other != place and lines[other] == lines[place]:
                product *= _learn_pair(centres, uint64(place), contexts, uint64(other), by_centres, by_contexts)
                degrees[place] += 1
                if degrees[place] % _MOST_FACTORS == 0:
                    loss, product = loss - np.log(product), 1.0
        loss -= np.log(product)
    return loss


@njit(inline="always")
def _contrast(
    count: Any, degrees: Any, per_pair: Any, centres: Any, noises: Any, by_centres: Any, by_noises: Any, scores: Any
) -> Any:
    """Add the gradients that come from a row's negative samples. Return the loss of these samples.

    BLAS computes the matrix products, which halves the time. `per_pair`: the number of negative samples per pair.
    `scores` (tokens, shared): scratch memory.
    """
    loss, shared = 0.0, len(noises)
    products = scores[:count]
    np.dot(centres[:count], noises.T, products)
    for place in range(count):
        weight, product = np.float32(degrees[place] * per_pair / shared), 1.0
        for other in range(shared):
            wrong, right = _probabilities(products[place, other])
            products[place, other] = weight * wrong
            product *= right
            if other % _MOST_FACTORS == _MOST_FACTORS - 1:
                loss, product = loss - weight * np.log(product), 1.0
        loss -= weight * np.log(product)
    by_centres[:count] += np.dot(products, noises)
    by_noises += np.dot(products.T, centres[:count])
    return loss


@partial(compiled, reordered=True)
def skipgram_gradients(rows: Any, keys: Any, rules: Any, tables: Any, places: Any, touched: Any, sums: Any) -> Any:
    """Sum the gradients of `rows` (n, tokens). `keys` (n,): hashes for the random choices of each row.

    `rules`: (keep, noise, window, negatives per pair, negatives per row). `tables`, `places`, `touched`, `sums`: two
    arrays each, for centres and for contexts. The gradients are written to `sums`, and their words to `touched`.
    `places` (rows of the table,): scratch memory, which is -1 everywhere before and after the call. Returns the numbers
    of touched centres and contexts (2,), the loss, and the number of pairs.
    """
    keep, noise, window, per_pair, shared = rules
    length, columns = rows.shape[1], tables[0].shape[1]
    words, lines, reaches, degrees = np.empty((4, length), np.int64)
    negatives = np.empty(shared, np.int64)
    # Allocate the arrays separately: LLVM cannot prove that parts of one array do not overlap, which halves the speed.
    centres, by_centres = np.empty((length, columns), np.float32), np.empty((length, columns), np.float32)
    contexts, by_contexts = np.empty((length, columns), np.float32), np.empty((length, columns), np.float32)
    noises, by_noises = np.empty((shared, columns), np.float32), np.empty((shared, columns), np.float32)
    scores = np.empty((length, shared), np.float32)
    known, pairs, loss = np.zeros(2, np.int64), 0, 0.0
    for number in range(len(rows)):
        count = keep_words(rows[number], keys[number], keep, window, words, lines, reaches)
        for place in range(count):
            centres[place], contexts[place] = tables[0][words[place]], tables[1][words[place]]
        by_centres[:count], by_contexts[:count], by_noises[:] = 0.0, 0.0, 0.0
        loss += _learn_pairs(count, lines, reaches, centres, contexts, by_centres, by_contexts, degrees)
        learned = degrees[:count].sum()
        if learned == 0:
            continue
        pairs += learned
        draw_negatives(keys[number], noise, negatives)
        for place in range(shared):
            noises[place] = tables[1][negatives[place]]
        loss += _contrast(count, degrees, per_pair, centres, noises, by_centres, by_noises, scores)
        known[0] = _collect(words, count, by_centres, places[0], touched[0], sums[0], known[0])
        known[1] = _collect(words, count, by_contexts, places[1], touched[1], sums[1], known[1])
        known[1] = _collect(negatives, shared, by_noises, places[1], touched[1], sums[1], known[1])
    for kind in range(2):
        for place in range(known[kind]):
            places[kind][touched[kind][place]] = -1
    return known, loss, pairs
