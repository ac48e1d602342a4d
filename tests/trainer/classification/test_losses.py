"""Losses: sums over rows, weights of positive rows, and class probabilities."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from trainer.classification.losses import BCE, CROSS_ENTROPY, MSE, SOFTMAX, Loss, Scale

STARS = Scale(1, 5, 4)
KINDS = (BCE, CROSS_ENTROPY, MSE, SOFTMAX)


def rows(seed: int, loss: Loss, count: int = 12) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return outputs, labels and ratings."""
    generator = np.random.default_rng(seed)
    ratings = generator.integers(loss.scale.low, loss.scale.high + 1, count).astype(np.uint8)
    labels = (ratings >= loss.scale.positive_from).astype(np.uint8)
    outputs = torch.from_numpy(generator.normal(0, 2, (count, loss.outputs)))
    return outputs, torch.from_numpy(labels), torch.from_numpy(ratings)


@given(
    seed=st.integers(0, 9999),
    kind=st.sampled_from(KINDS),
    scale=st.sampled_from([STARS, Scale(0, 1, 1), Scale(1, 10, 7)]),
    weight=st.floats(0.01, 10),
)
def test_a_loss_is_the_sum_over_rows_with_weighted_positive_rows(seed, kind, scale, weight):
    loss = Loss(kind=kind, scale=scale, positive_weight=weight)
    outputs, labels, ratings = rows(seed, loss)
    unweighted = Loss(kind=kind, scale=scale, positive_weight=1.0)
    alone = [unweighted.sum(outputs[row : row + 1], labels[row : row + 1], ratings[row : row + 1]) for row in range(12)]
    expected = sum(float(each) * (weight if label else 1.0) for each, label in zip(alone, labels, strict=True))
    assert float(loss.sum(outputs, labels, ratings)) == pytest.approx(expected)


def test_weighted_binary_cross_entropy_equals_that_of_torch():
    loss = Loss(kind=BCE, scale=STARS, positive_weight=0.2)
    outputs, labels, ratings = rows(1, loss)
    expected = F.binary_cross_entropy_with_logits(
        outputs[:, 0], labels.double(), pos_weight=torch.tensor(0.2), reduction="sum"
    )
    assert float(loss.sum(outputs, labels, ratings)) == pytest.approx(float(expected))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [STARS, Scale(0, 1, 1)])
def test_constant_outputs_minimise_the_loss(kind, scale):
    loss = Loss(kind=kind, scale=scale, positive_weight=0.3)
    _, labels, ratings = rows(3, loss, count=20_000)
    constant_outputs = loss.constant_outputs(labels.numpy(), ratings.numpy())
    outputs = constant_outputs.expand(len(labels), -1).clone().requires_grad_()
    loss.sum(outputs, labels, ratings).backward()
    assert outputs.grad.mean(0).abs().max() < 1e-3


def test_a_missing_rating_has_a_probability_above_zero_and_log_odds_compare_positive_with_negative_ratings():
    loss = Loss(kind=CROSS_ENTROPY, scale=STARS, positive_weight=1.0)
    constant = loss.constant_outputs(np.array([1, 1, 0], np.uint8), np.array([5, 5, 1], np.uint8))
    assert constant.softmax(0).tolist() == pytest.approx([2 / 8, 1 / 8, 1 / 8, 1 / 8, 3 / 8])
    outputs, _, _ = rows(2, loss)
    assert torch.allclose(loss.log_odds(outputs).sigmoid(), outputs.softmax(1)[:, 3:].sum(1))


def of_classes(classes: int) -> Loss:
    return Loss(kind=SOFTMAX, scale=Scale(0, 1, 1), positive_weight=1.0, classes=classes)


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_cross_entropy_of_classes_equals_that_of_torch(classes):
    loss = of_classes(classes)
    generator = np.random.default_rng(0)
    outputs = torch.from_numpy(generator.normal(0, 2, (12, classes)))
    labels = torch.from_numpy(generator.integers(0, classes, 12).astype(np.uint8))
    assert loss.outputs == classes
    expected = F.cross_entropy(outputs, labels.long(), reduction="sum")
    assert float(loss.sum(outputs, labels, labels)) == pytest.approx(float(expected))
    assert torch.allclose(loss.probabilities(outputs), outputs.softmax(1))


@given(st.integers(2, 6).flatmap(lambda classes: st.lists(st.integers(0, 2), min_size=classes, max_size=classes)))
def test_a_tie_of_classes_predicts_the_smallest_label(outputs):
    predicted = of_classes(len(outputs)).predictions(torch.tensor([outputs], dtype=torch.float32))
    assert predicted.tolist() == [outputs.index(max(outputs))]


@pytest.mark.parametrize(
    "loss", [*(Loss(kind=kind, scale=STARS, positive_weight=0.3) for kind in KINDS), of_classes(3)]
)
def test_a_loss_survives_a_round_trip(loss):
    assert Loss.of(loss.plain()) == loss
