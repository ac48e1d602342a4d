"""The speed of a run, also of one that has not taken a step."""

import pytest

from tests.played_clock import PlayedClock
from trainer import clock
from trainer.clock import Activity, Clock, step_timer
from trainer.distributed.ranks import join_process_group
from trainer.output.checkpoint import RunProgress
from trainer.output.throughput import Throughput


def test_a_run_that_is_stopped_before_its_first_step_has_a_summary() -> None:
    with join_process_group(1) as ranks:
        found = Throughput(RunProgress(), Clock(), [100.0]).summary(ranks, step_timer(ranks.device, slowed=False))
    assert (found["samples_per_second"], found["share_of_ideal"], found["seconds"]) == (0.0, None, 0.0)


def test_of_a_resumed_run_speeds_count_since_its_latest_start_and_seconds_over_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clock, "time", played := PlayedClock())
    progress, spent = RunProgress(rows_seen=100, seconds=10.0), Clock()
    found = Throughput(progress, spent, [60.0, 40.0])
    assert found.rows_per_second is None
    for activity, seconds in ((Activity.TRAINING, 3.0), (Activity.CHECKPOINTS, 1.0), (Activity.EVALUATION, 7.0)):
        with spent.during(activity):
            played.sleep(seconds)
    progress.rows_seen = 300
    assert (found.seconds, found.rows_per_second, found.share_of_ideal) == (14.0, 50.0, 0.5)
    found.rates = [60.0, 65.0]
    assert found.share_of_ideal == 50 / 125
