"""The measures of a classifier, against their definitions by rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.classification.metrics import Confusion, balanced_accuracy, f1_negative, f1_positive, measures

cells = st.builds(
    Confusion,
    true_positive=st.integers(0, 50),
    false_positive=st.integers(0, 50),
    false_negative=st.integers(0, 50),
    true_negative=st.integers(0, 50),
)


def rows_of(c: Confusion) -> tuple[np.ndarray, np.ndarray]:
    labels = [1] * (c.true_positive + c.false_negative) + [0] * (c.true_negative + c.false_positive)
    calls = [1] * c.true_positive + [0] * (c.false_negative + c.true_negative) + [1] * c.false_positive
    return np.array(labels), np.array(calls)


def f1(labels: np.ndarray, calls: np.ndarray, label: int) -> float:
    both, called, there = (calls == label) & (labels == label), calls == label, labels == label
    if not both.any():
        return 0.0
    precision, recall = both.sum() / called.sum(), both.sum() / there.sum()
    return float(2 * precision * recall / (precision + recall))


@given(cells.filter(lambda c: c.rows > 0))
def test_measures_are_what_their_definitions_say(c: Confusion) -> None:
    labels, calls = rows_of(c)
    found = measures(c)
    assert found["accuracy"] == pytest.approx((labels == calls).mean())
    assert found["majority"] == pytest.approx(max(labels.mean(), 1 - labels.mean()))
    assert found["f1_positive"] == pytest.approx(f1(labels, calls, 1))
    assert found["f1_negative"] == pytest.approx(f1(labels, calls, 0))
    recalls = [(calls[labels == label] == label).mean() for label in (0, 1) if (labels == label).any()]
    assert found["balanced_accuracy"] == pytest.approx(np.mean(recalls))


def test_always_positive_has_no_negative_f1_and_half_the_balanced_accuracy() -> None:
    c = Confusion(true_positive=90, false_positive=10, false_negative=0, true_negative=0)
    assert (f1_negative(c), balanced_accuracy(c)) == (0.0, 0.5)
    assert f1_positive(c) == pytest.approx(180 / 190)


def test_no_rows_measure_nothing() -> None:
    nothing = Confusion(true_positive=0, false_positive=0, false_negative=0, true_negative=0)
    assert set(measures(nothing).values()) == {0.0}
