"""Word similarity: how well the cosines of pairs of words agree with what people said of the pairs.

A set is a text file with two words and a score a line. The agreement is Spearman's rank correlation, over the pairs of
which both words are known; how many these are is part of the result, because a set of which few are known says little.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from common.errors import DataError
from corpus.reading.storage import open_lines
from trainer.embeddings.vectors import WordVectors

_LEAST = 3
"""Pairs below which there is no rank correlation worth a number."""


class Pair(NamedTuple):
    """Two words, and how similar people find them."""

    one: str
    other: str
    score: float


class SimilarityResult(NamedTuple):
    """What vectors reach on a set of pairs."""

    spearman: float | None
    """From -1 to 1; None where too few pairs are known, or all of these have one score or one cosine."""
    known: int
    """Pairs of which both words are known."""
    pairs: int


def read_pairs(address: str) -> list[Pair]:
    """The pairs of a set, a path or s3://... Raises DataError for a file of another format, with the line."""
    found = []
    for number, line in enumerate(open_lines(address), 1):
        if not line.strip() or line.startswith(b"#"):
            continue
        try:
            one, other, score = line.decode().split()
            found.append(Pair(one, other, float(score)))
        except ValueError:
            raise DataError(
                f"{address}, line {number}: it has not two words and a number; give a list of pairs with their scores"
            ) from None
        if not np.isfinite(found[-1].score):
            raise DataError(f"{address}, line {number}: the score {found[-1].score} is no finite number")
    if not found:
        raise DataError(f"{address} has no pair of words; give a list of pairs with their scores")
    return found


def words_of(pairs: list[Pair]) -> Iterator[str]:
    return (word for pair in pairs for word in (pair.one, pair.other))


def similarity(vectors: WordVectors, pairs: list[Pair]) -> SimilarityResult:
    """How well the vectors agree with the scores of these pairs."""
    numbers = [(vectors.find(pair.one), vectors.find(pair.other), pair.score) for pair in pairs]
    known = [(one, other, score) for one, other, score in numbers if one is not None and other is not None]
    if len(known) < _LEAST:
        return SimilarityResult(None, len(known), len(pairs))
    ones, others, scores = map(np.array, zip(*known, strict=True))
    cosines = np.einsum("nd,nd->n", vectors.unit[ones], vectors.unit[others])
    return SimilarityResult(spearman(cosines, scores), len(known), len(pairs))


def spearman(one: npt.NDArray[np.floating], other: npt.NDArray[np.floating]) -> float | None:
    """The rank correlation of two quantities (n,); equal values share their mean rank. None where one of them is the
    same throughout, or not a number everywhere."""
    if np.isnan(one).any() or np.isnan(other).any():
        return None
    ranks = np.stack([_ranks(one), _ranks(other)])
    away = ranks - ranks.mean(axis=1, keepdims=True)
    squares = (away**2).sum(axis=1)
    return float((away[0] * away[1]).sum() / np.sqrt(squares.prod())) if squares.all() else None


def _ranks(values: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    means: npt.NDArray[np.float64] = np.cumsum(counts) - (counts - 1) / 2
    return means[places]
