import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shoal_balance.speed import fit_time_model


@given(st.floats(0, 1), st.floats(1e-4, 1e-1))
def test_a_line_is_found_from_two_row_counts(a, b):
    rows = np.array([20.0, 20, 200, 200])
    found_a, found_b = fit_time_model(list(zip(rows, a + b * rows, strict=True)))
    assert found_a + found_b * 20 == pytest.approx(a + b * 20, rel=0.1)
    assert found_a + found_b * 200 == pytest.approx(a + b * 200, rel=0.1)


def test_a_step_of_few_rows_shows_the_fixed_part_and_is_not_a_stall():
    points = [(rows, 0.5 + 0.01 * rows) for rows in (5.0, *[100.0, 120.0] * 3)]
    assert fit_time_model(points).fixed > 0.3


def test_with_one_row_count_time_is_proportional():
    assert fit_time_model([(50.0, 2.0)] * 5) == pytest.approx((0.0, 0.04))


@given(st.data(), st.lists(st.tuples(st.integers(1, 99), st.floats(1e-4, 10)), min_size=1, max_size=20))
def test_a_fit_does_not_depend_on_the_order_of_points(data, points):
    found = [fit_time_model(each) for each in (points, data.draw(st.permutations(points)))]
    assert found[0] == found[1]


def test_the_fit_excludes_occasional_stalls():
    rows = np.array([100.0, 110.0, 120.0, 130.0, 140.0, 150.0])
    seconds = 0.01 + 0.001 * rows
    seconds[[1, 4]] *= (3.0, 2.0)
    a, b = fit_time_model(list(zip(rows, seconds, strict=True)))
    assert (a + b * rows)[[0, 2, 3, 5]] == pytest.approx(seconds[[0, 2, 3, 5]], rel=0.02)
