"""The benchmarks of training: ideal times and rows."""

import pytest

from benchmarks.balance import ideal_seconds
from benchmarks.rows import VOCABULARY, write_rows
from trainer.classification.data import load_data


@pytest.mark.parametrize(("halves", "seconds"), [(False, 2.0), (True, 50 / 50 + 50 / 40)])
def test_ideal_time_has_two_parts_if_the_last_rank_loses_half_of_its_speed(halves: bool, seconds: float) -> None:
    assert ideal_seconds(100, [30.0, 20.0], halves=halves) == pytest.approx(seconds)


@pytest.mark.parametrize("count", [18, 19, 20, 21, 1000])
def test_number_of_training_rows(tmp_path, count: int) -> None:
    write_rows(tmp_path / "rows.h5", count)
    data = load_data(tmp_path / "rows.h5")
    assert (len(data.training), len(data.vocabulary)) == (count, VOCABULARY)
