"""Shares of time: they add up, and noise is neither speed nor loss. Speeds of a resumed run are those since its latest
start."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.played_clock import PlayedClock
from trainer import clock
from trainer.clock import Activity, Clock, step_timer
from trainer.distributed.ranks import join_process_group
from trainer.output.checkpoint import Progress
from trainer.output.throughput import Efficiency, Throughput

ROWS, SECONDS = st.integers(0, 50), st.floats(0, 10)
PHASES = ("order", "forward", "backward", "all_reduce", "update")


@given(
    st.integers(1, 6).flatmap(
        lambda ranks: st.tuples(
            st.lists(
                st.tuples(*[st.lists(each, min_size=ranks, max_size=ranks) for each in (ROWS, SECONDS)]), max_size=25
            ),
            st.tuples(*[st.dictionaries(st.sampled_from(PHASES), SECONDS)] * ranks),
        )
    ),
    st.floats(0.1, 100),
    SECONDS,
)
def test_shares_are_never_negative_and_add_up_to_one(reported, seconds, checkpoints):
    steps, phases = reported
    efficiency = efficiency_of([10.0] * len(phases), *steps)
    shares = efficiency.shares(rows=100, seconds=seconds, phases=phases, checkpoints=checkpoints, awaited=checkpoints)
    assert min(shares.values()) >= 0
    assert sum(shares.values()) == pytest.approx(1.0)
    assert list(shares) == ["balanced", "imbalance", "communication", "data", "checkpoints", "rest"]


def efficiency_of(rates, *steps):
    """Return the efficiency of ranks after steps with these rows and seconds."""
    efficiency = Efficiency(rates)
    for rows, seconds in steps:
        efficiency.add(np.array(rows), np.array(seconds))
    return efficiency


class Run(NamedTuple):
    """Reports of a run, and the true values."""

    shares: dict[str, float]
    seconds: float
    longest: float
    ideal: float
    """Ideal time by the ranks' rates in windows of ten steps."""


def run(computing, *, rows, reducing=0.0, ordering=0.0, updating=(), checkpoint=0.0):
    """Simulate ranks. They compute for `computing` seconds (steps, ranks), reduce for `reducing` seconds once the
    slowest has arrived, and update for different times. The first rank writes a checkpoint before the middle step."""
    times = np.array(computing)
    steps, ranks = times.shape
    efficiency, phases = Efficiency([1.0] * ranks), [dict.fromkeys(PHASES, 0.0) for _ in range(ranks)]
    clocks = np.zeros(ranks)
    other = np.array(updating) if len(updating) else np.zeros(ranks)
    for number, step in enumerate(times):
        clocks[0] += checkpoint if number == steps // 2 else 0.0
        clocks += ordering + step
        done = clocks.max() + reducing
        for rank, spent in enumerate(phases):
            spent["order"] += ordering
            spent["backward"] += step[rank]
            spent["all_reduce"] += done - clocks[rank]
        clocks = done + other
        efficiency.add(np.array(rows), step)
    windows = [times[first : first + 10] for first in range(0, steps, 10)]
    ideal = sum(
        len(window) * sum(rows) / sum(len(window) * count / window.sum(0)[rank] for rank, count in enumerate(rows))
        for window in windows
    )
    seconds, whole = float(clocks.max()), steps * sum(rows)
    shares = efficiency.shares(rows=whole, seconds=seconds, phases=phases, checkpoints=checkpoint, awaited=checkpoint)
    return Run(shares, seconds, float(times.max(1).sum()), ideal)


some_ranks = st.integers(1, 4).flatmap(
    lambda ranks: st.tuples(
        st.lists(st.lists(st.floats(0.1, 5), min_size=ranks, max_size=ranks), min_size=1, max_size=35),
        st.lists(st.integers(1, 50), min_size=ranks, max_size=ranks),
    )
)


@given(some_ranks, SECONDS, SECONDS, SECONDS, SECONDS)
def test_each_share_equals_its_true_value(ranks, reducing, ordering, updating, checkpoint):
    computing, rows = ranks
    times = {"reducing": reducing, "ordering": ordering, "updating": [updating] * len(rows)}
    found = run(computing, rows=rows, **times, checkpoint=checkpoint)
    steps = len(computing)
    spent = {name: share * found.seconds for name, share in found.shares.items()}
    assert spent["balanced"] == pytest.approx(found.ideal)
    assert spent["imbalance"] == pytest.approx(found.longest - found.ideal, abs=1e-6)
    assert spent["data"] == pytest.approx(steps * ordering, abs=1e-6)
    assert spent["checkpoints"] <= checkpoint + 1e-6
    if checkpoint == 0:
        assert spent["communication"] == pytest.approx(steps * reducing, abs=1e-6)
        assert spent["rest"] == pytest.approx(steps * updating, abs=1e-6)


def test_the_wait_for_a_checkpoint_is_not_communication():
    found = run([[4.0, 4.0]] * 10, rows=[1, 1], checkpoint=20.0).shares
    assert found["checkpoints"] == pytest.approx(1 / 3)
    assert found["communication"] == pytest.approx(0.0)
    late = run([[3.9, 4.0]] * 10, rows=[1, 1], checkpoint=20.0).shares
    assert late["checkpoints"] == pytest.approx(1 / 3, abs=0.01)
    assert late["communication"] == pytest.approx(0.0, abs=0.01)


def test_a_checkpoint_without_a_wait_does_not_reduce_communication():
    efficiency = efficiency_of([1.0, 1.0], ([90, 90], [90.0, 90.0]))
    phases = [{"backward": 90.0, "all_reduce": 4.0}] * 2
    shares = efficiency.shares(rows=180, seconds=99.0, phases=phases, checkpoints=5.0, awaited=0.0)
    assert (shares["communication"], shares["rest"]) == pytest.approx((4 / 99, 0.0))


def test_ranks_that_leave_an_all_reduce_at_different_times_count_all_of_it():
    efficiency = efficiency_of([1.0, 1.0], *[([1, 1], [8.0, 8.0])] * 10)
    phases = [{"backward": 80.0, "all_reduce": 20.0}] * 2  # at each step, the rank that left last arrives last
    shares = efficiency.shares(rows=20, seconds=100.0, phases=phases, checkpoints=0.0, awaited=0.0)
    assert shares["communication"] == pytest.approx(0.2)


def test_other_work_of_a_fast_rank_does_not_reduce_communication():
    found = run([[4.0, 8.0]] * 10, rows=[1, 1], reducing=1.0, updating=[1.0, 0.0])
    assert found.shares["communication"] == pytest.approx(10 / found.seconds)


@pytest.mark.parametrize("ranks", [2, 4])
def test_noise_does_not_count_as_speed(ranks):
    noise = np.random.default_rng(0).normal(1.0, 0.12, (400, ranks))
    assert run(noise.tolist(), rows=[1] * ranks).ideal == pytest.approx(400, rel=0.01)


def test_the_ideal_follows_a_rank_that_halves_its_speed():
    found = run([[1.0, 1.0]] * 105 + [[1.0, 2.0]] * 95, rows=[10, 10])
    assert found.ideal == pytest.approx(105 + 95 * 20 / 15, rel=0.01)
    assert found.shares["balanced"] == pytest.approx(found.ideal / (105 + 190), rel=0.01)


def test_a_rank_without_rows_keeps_its_rate():
    idle, both = [([10, 0], [5.0, 0.0])] * 10, [([10, 10], [5.0, 10.0])] * 10
    assert efficiency_of([2.0, 4.0], *idle).ideal_seconds(100) == pytest.approx(100 / (2.0 + 4.0))
    efficiency = efficiency_of([2.0, 4.0], *idle, *both, *idle)
    assert efficiency.ideal_seconds(400) == pytest.approx(100 / 6 + 200 / 3 + 100 / 3)


def test_steps_with_unknown_times_count_like_the_others():
    efficiency = efficiency_of([1.0], ([0], [0.0]), ([10], [5.0]))
    assert efficiency.ideal_seconds(30) == pytest.approx(15.0)


def test_a_run_that_is_stopped_before_its_first_step_has_a_summary():
    with join_process_group(1) as ranks:
        found = Throughput(Progress(), Clock(), [100.0]).summary(ranks, step_timer(ranks.device))
    assert (found["samples_per_second"], found["share_of_ideal"], found["seconds"]) == (0.0, None, 0.0)


def test_speeds_count_since_the_latest_start_and_seconds_over_all_starts(monkeypatch):
    monkeypatch.setattr(clock, "time", played := PlayedClock())
    progress, spent = Progress(rows_seen=100, seconds=10.0), Clock()
    found = Throughput(progress, spent, [60.0, 40.0])
    assert found.rows_per_second is None
    for activity, seconds in ((Activity.TRAINING, 3.0), (Activity.CHECKPOINTS, 1.0), (Activity.EVALUATION, 7.0)):
        with spent.during(activity):
            played.sleep(seconds)
    progress.rows_seen = 300
    assert (found.seconds, found.rows_per_second, found.share_of_ideal) == (14.0, 50.0, 0.5)
    found.rates = [60.0, 65.0]
    assert found.share_of_ideal == 50 / 125
