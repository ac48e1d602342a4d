"""Gradients by explicit formulas equal those of autograd."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from trainer.classification import models
from trainer.classification.losses import Loss, Scale
from trainer.classification.rows import RaggedRows, TextRows
from trainer.classification.task import text_gradients
from trainer.clock import StepTimer
from trainer.computing.threads import Threads

CPU = torch.device("cpu")
SCALE = Scale(1, 5, 4)
LOSSES = (
    Loss(kind="bce", scale=SCALE, positive_weight=0.3),
    Loss(kind="mse", scale=SCALE, positive_weight=1.7),
    Loss(kind="cross-entropy", scale=SCALE, positive_weight=0.3),
    Loss(kind="softmax", scale=SCALE, positive_weight=1.0, classes=5),
)


def some_rows(count: int, words: int, labels: int, dtype: type = np.uint16) -> RaggedRows:
    generator = np.random.default_rng(count)
    lengths = generator.integers(1, 9, count).astype(np.uint32)
    return RaggedRows(
        tokens=generator.integers(1, words, int(lengths.sum())).astype(dtype),
        lengths=lengths,
        labels=generator.integers(0, labels, count).astype(np.uint8),
        ratings=generator.integers(1, 6, count).astype(np.uint8),
        ends=np.cumsum(lengths).astype(np.int64),
        row_length=6,
    )


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
@given(data=st.data())
def test_a_loss_and_its_gradient_equal_those_of_autograd(loss, data):
    count = data.draw(st.integers(1, 5))
    numbers = st.floats(-90, 90, width=32)
    outputs = torch.from_numpy(data.draw(arrays.arrays(np.float32, (count, loss.outputs), elements=numbers)))
    labels = data.draw(arrays.arrays(np.uint8, count, elements=st.integers(0, loss.classes - 1)))
    ratings = data.draw(arrays.arrays(np.uint8, count, elements=st.integers(1, 5)))
    outputs.requires_grad_()
    expected = loss.sum(outputs, torch.from_numpy(labels), torch.from_numpy(ratings))
    expected.backward()
    total, gradient = loss.sum_with_gradient(outputs.detach().numpy(), labels, ratings)
    assert total == pytest.approx(float(expected.detach()), rel=1e-5, abs=1e-5)
    np.testing.assert_allclose(gradient, outputs.grad.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
@settings(max_examples=30)
@given(
    ngrams=st.integers(1, 3), dropout=st.sampled_from([0.0, 0.4]), count=st.integers(1, 80), threads=st.integers(1, 2)
)
def test_gradients_of_a_share_equal_those_of_autograd(loss, ngrams, dropout, count, threads):
    words = 40
    torch.manual_seed(1)
    options = {"embedding": 7, "ngrams": ngrams, "buckets": 50, "dropout": dropout, "outputs": loss.outputs}
    model = models.build("fasttext", {"words": words + 2, **options})
    model.set_vocabulary([f"w{number}" for number in range(words)])
    torch.nn.init.normal_(model.last.weight)
    rows = some_rows(200, words + 2, loss.classes)
    numbers = np.random.default_rng(count).permutation(200)[:count]
    computed = []
    for direct in (True, False):
        how = {"device": CPU, "seed": 3, "timer": StepTimer(), "threads": Threads(threads)}
        compute = text_gradients(model, rows, loss=loss, **how)
        assert compute._direct is not None
        if not direct:
            compute._direct = None
        model.zero_grad()
        value = compute(numbers, 90, 5)
        compute.set_table_gradients()
        computed.append([value, model.last.weight.grad.clone(), model.vectors.grad.to_dense()])
    torch.testing.assert_close(*computed, rtol=2e-5, atol=2e-6)


def test_unsupported_cases_are_left_to_autograd():
    loss, rows = LOSSES[0], some_rows(9, 30, 2)
    settings = {"words": 30, "embedding": 4, "ngrams": 2, "buckets": 9, "dropout": 0.0, "outputs": 1}
    words = models.build("fasttext", settings)
    assert words.direct_gradients(rows, loss, seed=0, device=CPU) is not None
    fixed = TextRows(tokens=np.ones((9, 3), np.uint16), lengths=rows.lengths, labels=rows.labels, ratings=rows.ratings)
    assert words.direct_gradients(fixed, loss, seed=0, device=CPU) is None
    assert words.direct_gradients(rows.copy_to(CPU), loss, seed=0, device=CPU) is None
    lstm = {"words": 30, "embedding": 4, "hidden": 3, "layers": 1, "pooling": "last", "dropout": 0.0}
    of_lstm = models.build("lstm", {**lstm, "embedding_dropout": 0.0, "outputs": 1})
    assert of_lstm.direct_gradients(rows, loss, seed=0, device=CPU) is None
