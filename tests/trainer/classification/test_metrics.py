"""Classification metrics, compared with their definitions by rows, and for two classes with the usual formulas."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.classification.metrics import Confusion, accuracy_interval, few_rows_note, measures

numbers = st.just(0) | st.integers(0, 50)  # a label may be missing among labels or predictions
matrices = st.integers(2, 6).flatmap(
    lambda classes: st.lists(numbers, min_size=classes**2, max_size=classes**2).map(Confusion.of)
)


def rows_of(c: Confusion) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return labels and predictions of rows with this confusion matrix."""
    cells = np.repeat(np.arange(c.classes**2), np.array(c.counts).flatten())
    return cells // c.classes, cells % c.classes


def f1(labels, predictions, label):
    both = ((predictions == label) & (labels == label)).sum()
    either = (predictions == label).sum() + (labels == label).sum()
    return 2 * both / either if either else 0.0


@given(matrices.filter(lambda c: c.rows > 0))
def test_metrics_equal_their_definitions(c):
    labels, predictions = rows_of(c)
    found = measures(c)
    assert c.rows == len(labels)
    assert found["accuracy"] == pytest.approx((labels == predictions).mean())
    assert found["majority"] == pytest.approx(np.bincount(labels).max() / len(labels))
    recalls = [(predictions[labels == label] == label).mean() for label in np.unique(labels)]
    assert found["balanced_accuracy"] == pytest.approx(np.mean(recalls))
    either = np.union1d(labels, predictions)
    assert found["macro_f1"] == pytest.approx(np.mean([f1(labels, predictions, label) for label in either]))
    of_each = {"f1_negative": f1(labels, predictions, 0), "f1_positive": f1(labels, predictions, 1)}
    assert {name: found[name] for name in of_each if name in found} == (
        pytest.approx(of_each) if c.classes == 2 else {}
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_metrics_of_no_rows_are_zero(classes):
    assert set(measures(Confusion.of([0] * classes**2)).values()) == {0.0}


@given(matrices)
def test_the_ends_of_the_interval_are_accuracies_1_96_standard_errors_away(c):
    low, high = accuracy_interval(c)
    found = measures(c)["accuracy"]
    assert 0 <= low <= high <= 1
    for end in (low, high) if c.rows else ():
        assert c.rows * (found - end) ** 2 == pytest.approx(1.959964**2 * end * (1 - end), abs=1e-9)


@pytest.mark.parametrize(("rows", "noted"), [(0, False), (1, True), (199, True), (200, False)])
def test_few_rows_are_noted(rows, noted):
    assert (few_rows_note(rows) is not None) == noted


def test_a_confusion_matrix_is_written_with_class_names():
    assert Confusion.of([1, 2, 3, 4, 5, 6, 7, 8, 9]).plain(("bad", "fair", "good")) == {
        "classes": ["bad", "fair", "good"],
        "counts": [[1, 2, 3], [4, 5, 6], [7, 8, 9]],
    }
