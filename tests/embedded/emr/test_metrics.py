"""The points of EMR's idle metric follow from the history of a cluster."""

from hypothesis import given
from hypothesis import strategies as st

from embedded.emr.metrics import points

MINUTE = 60.0


def test_a_point_every_five_minutes_tells_what_the_cluster_was_doing_then():
    history = [(0.0, "STARTING"), (7 * MINUTE, "WAITING"), (12 * MINUTE, "RUNNING"), (21 * MINUTE, "WAITING")]
    assert list(points(history, 31 * MINUTE)) == [(600, 1.0), (900, 0.0), (1200, 0.0), (1500, 1.0), (1800, 1.0)]


def test_a_cluster_that_never_was_ready_publishes_nothing():
    assert list(points([(0.0, "STARTING"), (MINUTE, "TERMINATING")], 10_000.0)) == []


def test_nothing_comes_after_the_end():
    history = [(0.0, "WAITING"), (11 * MINUTE, "TERMINATED")]
    assert list(points(history, 1e6)) == [(0.0, 1.0), (300.0, 1.0), (600.0, 1.0)]


@given(st.floats(0, 1e9), st.floats(0, 1e5))
def test_points_lie_between_readiness_and_the_requests_end(ready, length):
    found = list(points([(0.0, "STARTING"), (ready, "WAITING")], ready + length))
    assert all(ready <= moment < ready + length and moment % 300 == 0 for moment, _ in found)
    assert abs(len(found) - length / 300) <= 1
