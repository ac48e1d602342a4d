import pytest
from shoal_local_aws.emr.metrics import points

MINUTE = 60.0


@pytest.mark.parametrize(
    ("history", "until", "marks"),
    [
        (
            [(0.0, "STARTING"), (7 * MINUTE, "WAITING"), (12 * MINUTE, "RUNNING"), (21 * MINUTE, "WAITING")],
            31 * MINUTE,
            [(600, 1.0), (900, 0.0), (1200, 0.0), (1500, 1.0), (1800, 1.0)],
        ),
        ([(0.0, "STARTING"), (MINUTE, "TERMINATING")], 10_000.0, []),
        ([(0.0, "WAITING"), (11 * MINUTE, "TERMINATED")], 1e6, [(0.0, 1.0), (300.0, 1.0), (600.0, 1.0)]),
    ],
    ids=["at work between", "never ready", "ended"],
)
def test_a_point_every_five_minutes_has_the_clusters_state_at_that_time(history, until, marks):
    assert list(points(history, until)) == marks
