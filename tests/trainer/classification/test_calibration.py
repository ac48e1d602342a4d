"""Calibration: the temperature lowers the log loss of validation rows, and the threshold is the best for its metric."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from trainer.classification.calibration import best_threshold, calibrate, fit_temperature
from trainer.classification.losses import BCE, MSE, SOFTMAX, Loss, Scale
from trainer.classification.metrics import Confusion, balanced_accuracy, macro_f1

TWO = Loss(kind=BCE, scale=Scale(0, 1, 1), positive_weight=1.0)


@given(
    seed=st.integers(0, 9999),
    classes=st.integers(2, 4),
    count=st.integers(1, 40),
    sure=st.floats(0, 30),
)
def test_calibration_never_raises_the_log_loss_and_keeps_the_order(seed, classes, count, sure):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (count,), generator=generator)
    logits = torch.randn(count, classes, generator=generator) * sure
    found = fit_temperature(logits, labels)
    losses, likely = (
        {each: of(each) for each in (1.0, found, found * 1.1, found / 1.1)}
        for of in (
            lambda each: float(F.cross_entropy(logits.double() / each, labels, reduction="sum")),
            lambda each: math.log(each) ** 2 / (2 * 0.2**2),
        )
    )
    assert losses[found] <= losses[1.0] + 1e-9
    assert losses[found] + likely[found] <= min(losses[each] + likely[each] for each in losses) + 1e-9
    assert bool(((logits / found).gather(1, logits.argsort(1)).diff() >= 0).all())


@pytest.mark.parametrize("temperature", [0.4, 2.5, 300.0])
def test_fitting_recovers_the_temperature(temperature):
    log_odds = torch.randn(20_000, generator=torch.Generator().manual_seed(0)) * 2
    labels = (torch.rand(20_000, generator=torch.Generator().manual_seed(1)) < log_odds.sigmoid()).long()
    assert fit_temperature(F.pad(log_odds[:, None] * temperature, (1, 0)), labels) == pytest.approx(
        temperature, rel=0.05
    )


@pytest.mark.parametrize(
    ("log_odds", "least", "most"),
    [([-3.0, 2.0, 9.0], 0.9, 1.0), ([0.0, 0.0, 0.0], 1.0, 1.0), ([3.0, -2.0, -9.0], 1.2, 2.0)],
    ids=["all right", "uninformative", "all wrong"],
)
def test_few_rows_hardly_change_the_temperature(log_odds, least, most):
    found = fit_temperature(F.pad(torch.tensor(log_odds)[:, None], (1, 0)), torch.tensor([0, 1, 1]))
    assert least <= round(found, 6) <= most


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 20).map(lambda step: step / 20) | st.floats(0, 1, width=32), st.integers(0, 1)),
        min_size=2,
        max_size=12,
    ).filter(lambda rows: len({label for _, label in rows}) == 2),
    metric=st.sampled_from(("f1-macro", "balanced")),
)
def test_the_threshold_is_the_best_one_and_in_a_tie_the_nearest_to_a_half(rows, metric):
    probabilities, labels = np.array([each for each, _ in rows], np.float32).astype(float), [label for _, label in rows]
    edges = sorted({0.0, *probabilities.tolist(), 1.0})
    middles = [(low + high) / 2 for low, high in pairwise(edges) if not low <= 0.5 < high]

    def worth(threshold):
        cells = [2 * label + int(each > threshold) for each, label in zip(probabilities, labels, strict=True)]
        measure = macro_f1 if metric == "f1-macro" else balanced_accuracy
        return measure(Confusion.of(np.bincount(cells, minlength=4).tolist()))

    found = best_threshold(torch.tensor(probabilities, dtype=torch.float32), torch.tensor(labels), metric)
    best = max(map(worth, (*middles, 0.5)))
    assert 0 < found < 1
    assert worth(found) == pytest.approx(best)
    good = sorted(each for each in (*middles, 0.5) if worth(each) > best - 1e-9)
    assert found == min(good, key=lambda each: abs(each - 0.5))


@pytest.mark.parametrize("labels", [[], [1, 1, 1]])
def test_validation_rows_without_two_classes_leave_the_loss_uncalibrated(labels):
    logits = torch.tensor([[0.0, 4.0]] * len(labels)).reshape(-1, 2)
    found, note = calibrate(TWO, logits, torch.tensor(labels, dtype=torch.int64), "f1-macro")
    assert found == TWO
    assert "not calibrated" in note


def test_an_mse_loss_gets_a_threshold_and_no_temperature():
    logits, labels = torch.tensor([[0.0, 3.0], [0.0, 1.0], [0.0, 2.0], [0.0, 4.0]]), torch.tensor([1, 0, 0, 1])
    found, _ = calibrate(replace(TWO, kind=MSE), logits, labels, "f1-macro")
    assert found.temperature == 1
    assert found.predictions(logits[:, 1:] / (np.pi / np.sqrt(3))).tolist() == labels.tolist()
    assert calibrate(TWO, logits, labels, "accuracy")[0].threshold == 0.5


@pytest.mark.parametrize("classes", [2, 3])
def test_calibrated_probabilities_are_those_of_logits_over_the_temperature(classes):
    loss = Loss(kind=SOFTMAX, scale=Scale(0, 1, 1), positive_weight=1.0, classes=classes, temperature=2.5)
    outputs, labels = torch.randn(9, classes, generator=torch.Generator().manual_seed(0)), torch.arange(9) % classes
    found = loss.probabilities(outputs)
    assert torch.allclose(found, (outputs / 2.5).softmax(1))
    assert float(loss.log_loss(outputs, labels)) == pytest.approx(float(-found[torch.arange(9), labels].log().sum()))
    assert torch.equal(loss.predictions(outputs), replace(loss, temperature=1.0).predictions(outputs))
