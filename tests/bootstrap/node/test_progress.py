"""Progress of a run from its record, while the record grows."""

import json

import pytest

from bootstrap.node.progress import HUNG_SECONDS, RecordedProgress
from trainer.embeddings.options import ENDLESS
from trainer.output.lines import Start, Step


def start(time, **more):
    values = {"epochs": 2, "steps": 100, "from_step": 0, "global_batch": 10, "digest": "", "own_rates": (1.0,), **more}
    return Start(time=time, config={}, world_size=1, devices=("cpu",), rows={}, **values)


def step(number, time):
    return Step(time=time, epoch=1, step=number, loss=0.5, split=(10,), compute_seconds=(0.1,))


@pytest.fixture
def progress(tmp_path):
    return RecordedProgress(tmp_path)


def add(folder, *lines):
    with (folder / "record.jsonl").open("a") as record:
        record.writelines(f"{json.dumps(line.plain())}\n" for line in lines)


def test_the_expected_end_uses_the_speed_since_the_ranks_started(tmp_path, progress):
    progress.update()
    assert (progress.step, progress.steps, progress.ends, progress.attempt) == (None, None, None, None)
    add(tmp_path, start(1_000.0), step(1, 1_010.0))
    progress.update()
    assert (progress.step, progress.steps, progress.ends, progress.attempt) == (1, 100, None, 1)
    add(tmp_path, step(11, 1_030.0))
    progress.update()
    assert (progress.step, progress.ends) == (11, 1_030.0 + 89 * 2)
    add(tmp_path, start(2_000.0, steps=200, from_step=10), step(11, 2_000.0), step(21, 2_050.0))
    progress.update()
    assert (progress.step, progress.steps, progress.ends, progress.attempt) == (21, 200, 2_050.0 + 179 * 5, 2)


def test_an_endless_run_or_steps_without_duration_have_no_expected_end(tmp_path, progress):
    add(tmp_path, start(1_000.0, epochs=ENDLESS), step(1, 1_010.0), step(11, 1_030.0))
    progress.update()
    assert (progress.step, progress.steps, progress.ends) == (11, None, None)
    add(tmp_path, start(2_000.0), step(1, 2_010.0), step(11, 2_010.0))
    progress.update()
    assert (progress.step, progress.steps, progress.ends) == (11, 100, None)


def test_an_incomplete_line_changes_nothing(tmp_path, progress):
    add(tmp_path, start(1_000.0), step(1, 1_010.0), step(11, 1_030.0))
    progress.update()
    with (tmp_path / "record.jsonl").open("ab") as record:
        record.write(b'{"kind": "step", "time": 10\n{"kind": "st')
    progress.update()
    assert (progress.step, progress.steps, progress.ends) == (11, 100, 1_030.0 + 89 * 2)


@pytest.fixture
def at(tmp_path):
    """Function that returns whether the ranks hang at a time, after these new lines."""
    now = 0.0
    progress = RecordedProgress(tmp_path, lambda: now)

    def hung(seconds, *lines):
        nonlocal now
        now = seconds
        add(tmp_path, *lines)
        progress.update()
        return progress.hung

    return hung


def test_ranks_hang_after_many_times_the_usual_step_time(at, messages):
    assert at(1e6) == at(2e6, start(0.0)) == ""
    assert at(2e6 + 100, step(0, 0.0), step(100, 100.0)) == ""  # a second each
    assert at(2e6 + 99 + HUNG_SECONDS) == ""
    messages.check(at(2e6 + 100 + HUNG_SECONDS))
    assert at(3e6, step(101, 101.0)) == ""


def test_ranks_without_a_step_after_a_restart_hang(at):
    assert at(0.0, start(0.0), step(0, 0.0), step(10, 10.0)) == at(1000.0, start(20.0)) == ""
    assert at(1000.0 + HUNG_SECONDS)


def test_ranks_with_slow_steps_hang_only_after_many_of_them(at):
    assert at(0.0, start(0.0), step(0, 0.0), step(1, 100.0)) == at(HUNG_SECONDS) == ""
    assert "83 minutes" in at(5_000.0)
