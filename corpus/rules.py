"""Implements rules 3, 4 and 6 of docs/reference/dataset.md, each as a plain and as a fast function.

A plain function handles one text or word, a fast one handles many. The jobs use the fast functions. Both give the same
results. Do not compare digests with the test share in floating point, because 64 bits do not fit a double.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Word = TypeVar("Word", str, bytes)

VALIDATION_SHARE = 0.05
"""Share of the training rows, the first ones, on which choices are validated: rule 10."""

_CODES = 256


def modal_rating(counts: Mapping[int, int]) -> int:
    """Return the most frequent rating; a tie takes the smallest. `counts` maps each rating to its occurrences."""
    return min(counts, key=lambda rating: (-counts[rating], rating))


def modal_ratings(
    texts: Integers, ratings: npt.NDArray[Any], times: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """Return the `modal_rating` of each of N texts, and whether it had several ratings. Both have the shape (N,).

    Text `texts[i]`, from 0 to N - 1, had the rating `ratings[i]`, at most 255, `times[i]` times. The three arrays have
    the shape (M,) and any order. A pair of text and rating may occur several times, and each text occurs at least once.
    """
    keys, which = np.unique(texts * _CODES + ratings, return_inverse=True)
    counts = np.zeros(len(keys), np.int64)
    np.add.at(counts, which, times)
    of, rated = keys // _CODES, keys % _CODES
    best = np.lexsort((rated, -counts, of))
    firsts = np.flatnonzero(np.diff(of[best], prepend=-1))
    several = np.diff(np.append(firsts, len(best))) > 1
    return rated[best][firsts].astype(np.uint8), several


def in_test_set(text_digest: bytes, test_share: float) -> bool:
    """Return whether a text belongs to the test set. Only its digest decides, so duplicates are in the same split."""
    return int.from_bytes(text_digest[:8], "big") < 2**64 * test_share


def in_test_sets(high: npt.NDArray[np.uint64], test_share: float) -> npt.NDArray[np.uint8]:
    """Apply `in_test_set` to N texts; return 1 or 0, of shape (N,).

    `high`, of shape (N,), has the first 8 bytes of each digest as an integer.
    """
    below = -int(-(2**64 * test_share) // 1)  # for integers, below x means below the ceiling of x
    return (high < np.uint64(below)).astype(np.uint8)


def most_frequent(counts: Iterable[tuple[Word, int]], size: int) -> list[tuple[Word, int]]:
    """Return the `size` most frequent words with their counts, most frequent first; ties in alphabetical order."""
    return sorted(counts, key=lambda item: (-item[1], item[0]))[:size]


def most_frequent_ids(
    counts: Integers, join_words: Callable[[Integers], bytes], size: int, least: int = 0
) -> list[tuple[bytes, int]]:
    """Return the words and counts of `most_frequent`, in any order, without words that occur less than `least` times.

    `counts`, of shape (N,), has the count of the word with each id. `join_words` returns the words of some ids,
    separated by spaces. Only the words with the smallest count are sorted: sorting all takes longer than counting.
    """
    if len(counts) > size:
        least = max(least, int(np.partition(counts, -size)[-size]))
    more, same = np.flatnonzero(counts > least), np.flatnonzero(counts == least)
    ties = sorted(join_words(same).split())
    return [
        *zip(join_words(more).split(), counts[more].tolist(), strict=True),
        *((word, least) for word in ties[: size - len(more)]),
    ]
