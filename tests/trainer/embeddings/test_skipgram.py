import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch.nn.functional import logsigmoid

from corpus.text import FIRST_WORD
from trainer.computing.dropout import hashes
from trainer.computing.row_gradients import sum_touched_rows
from trainer.embeddings.sampling import SHARED, Sampling, sampling
from trainer.embeddings.skipgram import SkipGram, SkipGramGradients

WORDS, SIZE = 12, 7

texts = st.lists(
    st.lists(st.integers(0, WORDS + FIRST_WORD - 1), min_size=20, max_size=20), min_size=1, max_size=5
).map(lambda rows: np.array(rows, np.int32))


def rules(window: int = 3, subsample: float = 0.0, negatives: int = 5) -> Sampling:
    counts = np.arange(WORDS, 0, -1) * 10
    return sampling(counts, rows=100, window=window, negatives=negatives, subsample=subsample)


def model(seed: int = 0) -> SkipGram:
    torch.manual_seed(seed)
    found = SkipGram(WORDS + FIRST_WORD, SIZE)
    with torch.no_grad():
        found.centres.normal_()
        found.contexts.normal_()
    return found


def by_definition(learned, rows, keys, chosen):
    """Return the loss pair by pair, and its gradients by autograd, in float64."""
    from trainer.embeddings import skipgram_kernels  # imported here because numba takes long to load

    centres, contexts = (each.detach().double().requires_grad_() for each in (learned.centres, learned.contexts))
    loss, pairs = torch.zeros((), dtype=torch.float64), 0
    for row, key in zip(rows, keys, strict=True):
        words, lines, reaches = np.empty((3, len(row)), np.int64)
        count = skipgram_kernels.keep_words(row, key, chosen.keep, chosen.window, words, lines, reaches)
        drawn = np.empty(SHARED, np.int64)
        skipgram_kernels.draw_negatives(key, chosen.noise, drawn)
        for one in range(count):
            for other in range(count):
                if one == other or abs(one - other) > reaches[one] or lines[one] != lines[other]:
                    continue
                pairs += 1
                loss = loss - logsigmoid(centres[words[one]] @ contexts[words[other]])
                loss = loss - logsigmoid(-(contexts[drawn] @ centres[words[one]])).sum() * chosen.negatives / SHARED
    gradients = torch.autograd.grad(loss, [centres, contexts]) if pairs else [0 * centres, 0 * contexts]
    return loss.detach(), pairs, list(gradients)


def as_table(table_gradients, table: torch.Tensor) -> torch.Tensor:
    rows, values = sum_touched_rows(table_gradients)
    return torch.zeros(table.shape).index_add_(0, rows, values)


@settings(max_examples=40)
@given(texts, st.integers(1, 6), st.sampled_from([0.0, 1e-2]), st.integers(0, 2**32))
@example(np.full((1, 20), FIRST_WORD, np.int32), 19, 0.0, 0)  # some words have more pairs than a product has factors
@example(np.array([[0] * 20, [FIRST_WORD] * 20], np.int32), 3, 0.0, 0)  # a row without pairs, and one after it
def test_numba_and_torch_give_the_gradients_of_the_definition(rows, window, subsample, seed):
    chosen, learned = rules(window, subsample), model()
    keys = hashes(seed, 3, np.arange(len(rows)))
    loss, pairs, gradients = by_definition(learned, rows, keys, chosen)
    computing = SkipGramGradients(rows, chosen, seed=0, pairs_a_row=1.0, steady=False)
    by_numba, by_torch = computing.sums(learned.tables, rows, keys), computing._by_torch(learned.tables, rows, keys)
    for found_loss, found_pairs, table_gradients in (by_numba, by_torch):
        assert found_pairs == pairs
        assert found_loss.item() == pytest.approx(loss.item(), rel=1e-4, abs=1e-4)
        for table, own, expected in zip((learned.centres, learned.contexts), table_gradients, gradients, strict=True):
            assert torch.allclose(as_table(own, table).double(), expected, atol=2e-3, rtol=1e-3)
    for one, other in zip(by_numba[2], by_torch[2], strict=True):  # each word once, because ranks exchange it
        assert sorted(one.ids.tolist()) == other.ids.tolist()


def test_subsampling_equals_that_of_word2vec():
    from trainer.embeddings import skipgram_kernels

    counts = np.array([900_000, 99_000, 1_000])
    chosen = sampling(counts, rows=100, window=5, negatives=5, subsample=1e-3)
    share = counts / counts.sum()
    expected = np.minimum(1, np.sqrt(1e-3 / share) + 1e-3 / share)
    assert chosen.keep[FIRST_WORD:] / 2**24 == pytest.approx(expected, abs=1e-6)
    row, (words, lines, reaches) = np.full(10_000, FIRST_WORD, np.int32), np.empty((3, 10_000), np.int64)
    kept = skipgram_kernels.keep_words(row, np.uint64(977), chosen.keep, 5, words, lines, reaches)
    assert kept / 10_000 == pytest.approx(expected[0], abs=0.01)
    assert np.bincount(reaches[:kept], minlength=6)[1:] / kept == pytest.approx(np.full(5, 0.2), abs=0.1)


def test_negatives_are_drawn_in_proportion_to_a_power_of_counts():
    counts = np.array([1000, 100, 10, 1])
    chosen = sampling(counts, rows=100, window=5, negatives=5, subsample=0)
    assert (chosen.keep[FIRST_WORD:] == 1 << 24).all()  # without subsampling
    shares = np.bincount(chosen.noise, minlength=FIRST_WORD + 4)[FIRST_WORD:] / len(chosen.noise)
    assert shares == pytest.approx(counts**0.75 / (counts**0.75).sum(), rel=1e-4)
