"""The speed of a run, also of one that has not taken a step."""

from trainer.clock import Clock, step_timer
from trainer.distributed.ranks import join_process_group
from trainer.output.checkpoint import RunProgress
from trainer.output.throughput import Throughput


def test_a_run_that_is_stopped_before_its_first_step_has_a_summary() -> None:
    with join_process_group(1) as ranks:
        found = Throughput(RunProgress(), Clock(), [100.0]).summary(ranks, step_timer(ranks.device, slowed=False))
    assert (found["samples_per_second"], found["share_of_ideal"], found["seconds"]) == (0.0, None, 0.0)
