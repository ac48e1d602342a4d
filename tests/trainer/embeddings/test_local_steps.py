"""Local steps: a rank takes the same steps as a single rank would."""

from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.text import FIRST_WORD
from trainer.clock import StepTimer
from trainer.computing.row_gradients import FactoredGradient, sum_touched_rows
from trainer.embeddings import local_steps
from trainer.embeddings.local_steps import LocalSteps
from trainer.embeddings.sampling import Sampling, sampling
from trainer.embeddings.skipgram import SkipGram, SkipGramGradients

WORDS, SIZE, TOKENS = 12, 7, 20
RULES = sampling(np.arange(WORDS, 0, -1) * 10, rows=100, window=3, negatives=5, subsample=0.0)

texts = st.lists(
    st.lists(st.integers(0, WORDS + FIRST_WORD - 1), min_size=TOKENS, max_size=TOKENS), min_size=1, max_size=9
).map(lambda rows: np.array(rows, np.int32))


def model(*, squares: bool = False) -> SkipGram:
    torch.manual_seed(0)
    found = SkipGram(WORDS + FIRST_WORD, SIZE, squares=squares)
    with torch.no_grad():
        found.contexts.normal_()
    return found


def gradients(text: np.ndarray, rules: Sampling = RULES) -> SkipGramGradients:
    return SkipGramGradients(text, rules, seed=3, pairs_a_row=10.0, steady=True)


def local_steps_of(computing: SkipGramGradients, rows: int, *, rate: float, clip_norm: float = 0.0) -> LocalSteps:
    local = LocalSteps(computing, rows=rows, clip_norm=clip_norm)
    local.rate = rate
    return local


def as_tables(deltas: list[list[FactoredGradient]]) -> list[torch.Tensor]:
    """Return sparse gradients as dense tables."""
    found = []
    for (delta,) in deltas:
        rows, values = sum_touched_rows(delta)
        found.append(torch.zeros(WORDS + FIRST_WORD, values.shape[1]).index_add_(0, rows, values))
    return found


def test_steps_that_run_out_of_memory_restore_the_vectors():
    text = np.random.default_rng(0).integers(FIRST_WORD, WORDS + FIRST_WORD, (6, TOKENS), dtype=np.int32)
    learned, computing = model(), gradients(text)
    before = [each.detach().clone() for each in (learned.centres, learned.contexts)]
    local = local_steps_of(computing, 2, rate=1.0)
    fitting, compute_rows = iter((True, True, False)), computing.compute_rows

    def filling(*asked):
        if next(fitting):
            return compute_rows(*asked)
        raise torch.OutOfMemoryError("CUDA out of memory")

    with patch.object(computing, "compute_rows", filling), pytest.raises(torch.OutOfMemoryError):
        local(learned, np.arange(6), 6, 5, StepTimer())
    assert all(one.equal(other) for one, other in zip((learned.centres, learned.contexts), before, strict=True))


def by_hand(text: np.ndarray, own: int, rate: float, clip_norm: float, *, squares: bool) -> list[torch.Tensor]:
    """Return the movement of the vectors by steps of `own` rows each, by plain SGD on a separate model. With `squares`,
    use Adagrad with one rate per row, and also return the increments of the squares."""
    moved, computing = model(squares=squares), gradients(text)
    tables = [each.detach() for each in moved.parameters()]
    before = [each.clone() for each in tables]
    for begin in range(0, len(text), own):
        _, table_gradients = computing.compute_rows(moved, np.arange(begin, min(begin + own, len(text))), own, 5)
        found = as_tables([[each] for each in table_gradients])
        norm = float(torch.cat(found).norm())
        for number, each in enumerate(found):
            size = rate * min(1.0, clip_norm / norm if norm and clip_norm else 1.0)
            if squares:
                tables[2 + number] += each.square().mean(1, keepdim=True)
            tables[number] -= size * each / (tables[2 + number].sqrt() + 1e-10 if squares else 1.0)
    return [one - other for one, other in zip(before, tables, strict=True)]


@settings(max_examples=60)
@given(
    text=texts,
    own=st.integers(1, 4),
    rate=st.floats(0.01, 1.0),
    clip_norm=st.sampled_from([0.0, 0.05]),
    squares=st.booleans(),
    by_numba=st.booleans(),
)
def test_local_steps_are_sequential_and_the_vectors_are_restored(text, own, rate, clip_norm, squares, by_numba):
    learned = model(squares=squares)
    local = local_steps_of(gradients(text), own, rate=rate, clip_norm=clip_norm)
    with patch.object(local_steps, "computed_by_numba", return_value=by_numba):
        deltas = as_tables(local(learned, np.arange(len(text)), len(text), 5, StepTimer()).table_gradients)
    torch.testing.assert_close(deltas, by_hand(text, own, rate, clip_norm, squares=squares), rtol=1e-3, atol=1e-4)
    for table, expected in zip(learned.parameters(), model(squares=squares).parameters(), strict=True):
        assert torch.equal(table, expected)


def test_increments_of_squares_are_summed_even_for_frequent_words():
    text = np.full((8, TOKENS), FIRST_WORD, np.int32)
    grown = []
    for of in (4, 8):  # alone, and half of the rows of two ranks
        local = local_steps_of(gradients(text), 4, rate=0.1)
        grown.append(as_tables(local(model(squares=True), np.arange(4), of, 5, StepTimer()).table_gradients)[2:])
    for alone, of_two in zip(*grown, strict=True):
        assert torch.equal(alone, of_two)
        assert alone[FIRST_WORD] < 0  # with the sign of a gradient


def test_with_two_ranks_frequent_words_move_half_and_rare_words_fully():
    counts = np.array([10_000, *[1] * (WORDS - 1)])
    rules = sampling(counts, rows=100, window=3, negatives=5, subsample=0.0)
    text = np.full((4, TOKENS), FIRST_WORD, np.int32)
    text[0, 3] = FIRST_WORD + 1
    moved = []
    for of in (4, 8):  # alone, and half of the rows of two ranks
        local = local_steps_of(gradients(text, rules), 4, rate=0.1)
        moved.append(as_tables(local(model(), np.arange(4), of, 5, StepTimer()).table_gradients)[0])
    alone, of_two = moved
    assert alone[[FIRST_WORD, FIRST_WORD + 1]].norm(dim=1).min() > 0
    torch.testing.assert_close(of_two[FIRST_WORD], alone[FIRST_WORD] / 2)
    torch.testing.assert_close(of_two[FIRST_WORD + 1], alone[FIRST_WORD + 1])
