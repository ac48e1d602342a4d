"""Times of a run and of a step add up: each moment counts once."""

from contextlib import suppress
from types import SimpleNamespace

import pytest
import torch

from tests.played_clock import PlayedClock
from trainer import clock
from trainer.clock import ALL_REDUCE, BACKWARD, ORDER, Activity, Clock, ComputeStats, StepTimer, step_timer


@pytest.fixture
def played(monkeypatch):
    made = PlayedClock()
    monkeypatch.setattr(clock, "time", made)
    return made


def test_activities_add_up_to_the_total_time(played):
    spent = Clock()
    played.now += 3
    with spent.during(Activity.TRAINING):
        played.now += 10
        with spent.during(Activity.CHECKPOINTS):
            played.now += 2
        played.now += 5
        assert spent.training == 17
    assert spent.switch_to(Activity.OTHER) == Activity.LOADING
    played.now += 1
    assert spent.times == {
        "loading": 3,
        "rates": 0,
        "waiting": 0,
        "training": 15,
        "checkpoints": 2,
        "evaluation": 0,
        "other": 1,
    }
    assert sum(spent.times.values()) == played.now


def test_an_activity_that_an_error_ends_is_counted(played):
    spent = Clock()
    with suppress(ZeroDivisionError), spent.during(Activity.EVALUATION):
        played.now += 4
        raise ZeroDivisionError
    played.now += 1
    assert (spent.times[Activity.EVALUATION], spent.times[Activity.LOADING]) == (4, 1)


def test_phases_of_a_step_are_known_immediately_and_add_up(played):
    timer = StepTimer()
    for _ in range(2):
        timer.begin(100)
        for phase, seconds in ((ORDER, 1.0), (BACKWARD, 10.0), (ALL_REDUCE, 3.0), (BACKWARD, 2.5)):
            played.now += seconds
            timer.end_phase(phase)
        assert timer.latest_stats() == ComputeStats(rows=100, seconds=12.5)
    timer.finish()
    assert timer.sums == {"order": 2.0, "backward": 25.0, "all_reduce": 6.0}


def test_times_of_cuda_events_are_seconds_and_known_two_steps_later(played, monkeypatch):
    def event(enable_timing):
        """Return an event that knows its time in milliseconds, as those of CUDA do."""
        made = SimpleNamespace(synchronize=lambda: None, elapsed_time=lambda end: end.at - made.at)
        made.record = lambda: setattr(made, "at", 1000 * played.now)
        return made

    monkeypatch.setattr(torch.cuda, "Event", event)
    timer = step_timer(torch.device("cuda"))
    latest = []
    for step in range(1, 5):
        timer.begin(100 * step)
        for phase in (ORDER, BACKWARD):
            played.now += step
            timer.end_phase(phase)
        latest.append(timer.latest_stats())
    assert latest == [(0, 0.0), (0, 0.0), (100, 1.0), (200, 2.0)]
    timer.finish()
    assert timer.sums == {"order": 10.0, "backward": 10.0}
