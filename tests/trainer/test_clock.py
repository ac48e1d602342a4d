"""The times of a run, and of a step, add up: each moment counts once."""

from contextlib import suppress

import pytest

from trainer import clock
from trainer.clock import ALL_REDUCE, BACKWARD, ORDER, Activity, Clock, ComputeStats, StepTimer


class Now:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def perf_counter(self) -> float:
        return self.seconds


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Now:
    made = Now()
    monkeypatch.setattr(clock, "time", made)
    return made


def test_each_moment_counts_for_one_activity_and_together_they_are_the_whole_time(now: Now) -> None:
    spent = Clock()
    now.seconds += 3
    with spent.during(Activity.TRAINING):
        now.seconds += 10
        with spent.during(Activity.CHECKPOINTS):
            now.seconds += 2
        now.seconds += 5
        assert spent.training == 17
    assert spent.turn_to(Activity.OTHER) == Activity.LOADING
    now.seconds += 1
    assert spent.times == {
        "loading": 3,
        "rates": 0,
        "waiting": 0,
        "training": 15,
        "checkpoints": 2,
        "evaluation": 0,
        "search": 0,
        "other": 1,
    }
    assert sum(spent.times.values()) == now.seconds - 100


def test_what_an_error_ends_counts_for_what_it_was(now: Now) -> None:
    spent = Clock()
    with suppress(ZeroDivisionError), spent.during(Activity.EVALUATION):
        now.seconds += 4
        raise ZeroDivisionError
    now.seconds += 1
    assert (spent.times[Activity.EVALUATION], spent.times[Activity.LOADING]) == (4, 1)


def test_the_phases_of_a_step_are_told_at_once_and_add_up_over_steps(now: Now) -> None:
    timer = StepTimer()
    for _ in range(2):
        timer.begin(100)
        for phase, seconds in ((ORDER, 1.0), (BACKWARD, 10.0), (ALL_REDUCE, 3.0), (BACKWARD, 2.5)):
            now.seconds += seconds
            timer.end_phase(phase)
        assert timer.latest_stats() == ComputeStats(rows=100, seconds=12.5)
    timer.finish()
    assert timer.sums == {"order": 2.0, "backward": 25.0, "all_reduce": 6.0}
