"""Ranks with unequal shares find the gradients of one process on the whole batch."""

import json
import math
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def deviations(launch, tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    result = tmp_path_factory.mktemp("gradients") / "deviations.json"
    process = launch(3, Path(__file__).with_name("gradients.py"), result)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    return json.loads(result.read_text())


@pytest.mark.parametrize("gradient", ["whole", "clipped"])
@pytest.mark.parametrize("split", ["7/41/16", "1/62/1", "0/40/24", "64/0/0"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("float64", 1e-14)])
def test_the_gradient_of_unequal_shares_is_that_of_one_process(
    deviations: dict[str, float], dtype: str, tolerance: float, split: str, gradient: str
) -> None:
    assert deviations[f"{dtype} {split} {gradient} in 32"] < tolerance
    assert deviations[f"{dtype} {split} {gradient} of all words"] < tolerance
    assert deviations[f"{dtype} {split} {gradient} claimed"] < tolerance


@pytest.mark.parametrize("gradient", ["whole", "clipped"])
@pytest.mark.parametrize("split", ["7/41/16", "1/62/1", "0/40/24", "64/0/0"])
def test_in_half_precision_it_is_off_by_its_rounding(deviations: dict[str, float], split: str, gradient: str) -> None:
    assert 1e-6 < deviations[f"float32 {split} {gradient} in 16"] < 2e-3


def test_in_half_precision_a_large_gradient_is_cut_and_an_infinite_one_known(deviations: dict[str, float]) -> None:
    assert 15.8 < deviations["large, smallest"] < 16.0  # of 3 x 6
    assert math.isfinite(deviations["large, norm"])
    assert not math.isfinite(deviations["infinite, norm"])
