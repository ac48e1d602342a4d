"""Co-occurrences, mutual information and PIP loss, compared with plain implementations."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trainer.embeddings.pip_loss import Pairs, cooccurrences, pip_loss, sppmi

WORDS = 4
TOKENS = arrays(np.int32, st.tuples(st.integers(0, 5), st.integers(1, 9)), elements=st.integers(0, WORDS + 2))


def dense(pairs: Pairs) -> np.ndarray:
    """Return the dense matrix (words, words)."""
    found = np.zeros((pairs.words, pairs.words))
    found[pairs.one, pairs.other] = found[pairs.other, pairs.one] = pairs.values
    return found


def counted(tokens: np.ndarray, *, words: int, window: int) -> np.ndarray:
    """Count neighbours (words, words) place by place."""
    found = np.zeros((words, words))
    for row in tokens.tolist():
        lines: list[list[int]] = [[]]
        for token in row:
            if token == 0:
                lines.append([])
            elif 2 <= token < 2 + words:
                lines[-1].append(token - 2)
        for line in lines:
            for place, word in enumerate(line):
                for far in range(1, window + 1):
                    for near in (place - far, place + far):
                        if 0 <= near < len(line):
                            found[word, line[near]] += 1
    return found


@given(tokens=TOKENS, window=st.integers(1, 10), block=st.integers(1, 40))
def test_neighbours_within_a_line_are_counted_after_removal_of_other_words(tokens, window, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trainer.embeddings.pip_loss._COUNTED_PAIRS", block)
        found = cooccurrences(tokens, words=WORDS, window=window)
    assert dense(found).tolist() == counted(tokens, words=WORDS, window=window).tolist()
    places = list(zip(found.one.tolist(), found.other.tolist(), strict=True))
    assert places == sorted(set(places))
    assert all(one <= other for one, other in places)


@given(tokens=TOKENS, negatives=st.integers(1, 3))
def test_mutual_information_equals_the_formula(tokens, negatives):
    counts = counted(tokens, words=WORDS, window=2)
    sums = counts.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.log(counts * counts.sum() / np.outer(sums, sums)) - math.log(negatives)
    expected = np.where(counts > 0, np.maximum(expected, 0), 0)
    found = dense(sppmi(cooccurrences(tokens, words=WORDS, window=2), negatives=negatives))
    assert found == pytest.approx(expected)


@given(data=st.data(), words=st.integers(1, 6), size=st.integers(1, 4), more=st.integers(0, 2))
def test_the_pip_loss_equals_that_of_dense_matrices(data, words, size, more):
    numbers = st.floats(-3, 3, width=16)
    vectors = data.draw(arrays(np.float64, (words + more, size), elements=numbers))
    half = np.triu(data.draw(arrays(np.float64, (words, words), elements=numbers)))
    one, other = np.nonzero(half)
    reference = Pairs(words, one.astype(np.int32), other.astype(np.int32), half[one, other])
    of_vectors, of_reference = vectors[:words] @ vectors[:words].T, dense(reference)
    away = of_vectors - of_reference
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trainer.embeddings.pip_loss._BLOCK_PAIRS", 3)
        found = pip_loss(vectors, reference)
    assert found.loss == pytest.approx(np.linalg.norm(away), abs=1e-5)
    assert found.mean_square == pytest.approx(np.square(away).mean(), abs=1e-9)
    norms = np.linalg.norm(of_vectors) * np.linalg.norm(of_reference)
    assert found.cosine == pytest.approx((of_vectors * of_reference).sum() / norms if norms else 0, abs=1e-9)


def test_memory_depends_on_distinct_pairs_and_not_on_the_text():
    generator = np.random.default_rng(0)
    text = (generator.zipf(1.3, (300, 128)) % 1002).astype(np.int32)  # low ids are frequent
    tokens = np.broadcast_to(text, (20, 300, 128)).reshape(-1, 128)
    tracemalloc.start()
    try:
        found = cooccurrences(tokens, words=1000, window=5)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 130 * len(found.one) + (64 << 20)
