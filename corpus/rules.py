"""Implements rules 3, 4 and 6 of docs/reference/dataset.md, each as a plain function and as a fast function.

A plain function processes one text or word, and a fast function processes many. The jobs use the fast functions. Both
return the same results. Do not compare a digest with the test share in floating point, because a double cannot
represent every 64-bit integer.
"""

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Word = TypeVar("Word", str, bytes)

VALIDATION_SHARE = 0.05
"""Share of the training rows that are used for validation, not for training (rule 10). These are the first rows."""

_CODES = 1 << 16


def modal_rating(counts: Mapping[int, int]) -> int:
    """Return the most frequent rating. If several are equally frequent, return the smallest.

    `counts` maps each rating to its number of occurrences.
    """
    return min(counts, key=lambda rating: (-counts[rating], rating))


def modal_ratings(
    texts: Integers, ratings: npt.NDArray[Any], times: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return the `modal_rating` of each of N texts, and whether the text had different ratings.

    Both arrays have the shape (N,). Entry i says: the text `texts[i]` occurred `times[i]` times with the rating
    `ratings[i]`. Texts are numbers from 0 to N - 1, and ratings are below 2^16. The three arrays have the shape (M,).
    The entries can be in any order, and several entries can have the same text and rating. Each text occurs at least
    once.
    """
    keys, which = np.unique(texts * _CODES + ratings, return_inverse=True)
    counts = np.zeros(len(keys), np.int64)
    np.add.at(counts, which, times)
    of, rated = keys // _CODES, keys % _CODES
    best = np.lexsort((rated, -counts, of))
    firsts = np.flatnonzero(np.diff(of[best], prepend=-1))
    several = np.diff(np.append(firsts, len(best))) > 1
    return rated[best][firsts].astype(ratings.dtype), several


def in_test_set(text_digest: bytes, test_share: float) -> bool:
    """Return whether a text belongs to the test set.

    This depends only on its digest, so duplicates are in the same split.
    """
    return int.from_bytes(text_digest[:8], "big") < 2**64 * test_share


def in_test_sets(high: npt.NDArray[np.uint64], test_share: float) -> npt.NDArray[np.uint8]:
    """Return 1 for each of N texts that belongs to the test set and 0 for all others, of shape (N,); see `in_test_set`.

    `high`, of shape (N,), has the first 8 bytes of each digest as an integer.
    """
    below = -int(-(2**64 * test_share) // 1)  # an integer is below x if and only if it is below the ceiling of x
    return (high < np.uint64(below)).astype(np.uint8)


def most_frequent(counts: Iterable[tuple[Word, int]], size: int) -> list[tuple[Word, int]]:
    """Return the `size` most frequent words with their counts, most frequent first.

    Words with equal counts are in the order of their code points or bytes.
    """
    # The second sort keeps the order of equal counts. Two sorts take a third of the time of one sort with a joint key.
    ordered = sorted(counts, key=itemgetter(0))
    ordered.sort(key=itemgetter(1), reverse=True)
    return ordered[:size]


def most_frequent_ids(
    counts: Integers, join_words: Callable[[Integers], bytes], size: int, least: int = 0
) -> npt.NDArray[np.int64]:
    """Return the ids of the words that `most_frequent` returns, in any order.

    Words that occur less than `least` times are left out. `counts`, of shape (N,), has the number of occurrences of the
    word with each id. `join_words` returns the words with given ids, separated by spaces. Only the words with the
    smallest returned count are sorted, because sorting all words would take longer than counting them.
    """
    if len(counts) > size:
        least = max(least, int(np.partition(counts, -size)[-size]))
    more, same = np.flatnonzero(counts > least), np.flatnonzero(counts == least)
    ties = join_words(same).split()
    first_ties = sorted(range(len(ties)), key=ties.__getitem__)[: size - len(more)]
    return np.concatenate((more, same[np.array(first_ties, np.int64)]))
