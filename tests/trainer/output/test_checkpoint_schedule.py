"""Schedule of checkpoints: each is written once, and a stopped run resumes from any of them."""

import os
import signal
from types import SimpleNamespace

import pytest

from corpus.dataset import write_dataset
from corpus.dataset_settings import Settings
from tests.played_clock import PlayedClock
from tests.trainer.conftest import VOCABULARY, make_rows
from tests.trainer.runs import lines, train_here
from trainer.classification.task import Classification
from trainer.clock import Clock
from trainer.output import checkpoint, checkpoint_schedule
from trainer.output.checkpoint_schedule import Checkpointer, seconds_between_checkpoints

STEPS = 3


@pytest.fixture
def train(tmp_path, monkeypatch):
    """Train for an epoch of three steps, which ends with a checkpoint. Return the content of summary.json."""
    monkeypatch.setattr(checkpoint_schedule, "_EPOCH_CHECKPOINT_SECONDS", 0.0)
    data, settings = tmp_path / "dataset.h5", Settings(row_length=20, vocabulary_size=60)
    rows = {"train": make_rows(300, seed=1), "test": make_rows(99, seed=2)}
    write_dataset(data, **rows, vocabulary=VOCABULARY, settings=settings)

    def run(*arguments):
        return train_here(tmp_path, "--data", data, "--epochs", 1, "--batch-size", 100, *arguments)

    return run


@pytest.mark.parametrize(
    ("minutes", "writing", "seconds"), [(0.0, 0.0, 15.0), (0.0, 0.4, 40.0), (0.0, 60.0, 300.0), (0.5, 60.0, 30.0)]
)
def test_writing_takes_a_hundredth_of_the_time_within_bounds(minutes, writing, seconds):
    assert seconds_between_checkpoints(minutes, writing) == pytest.approx(seconds)


def test_a_checkpoint_is_due_after_its_seconds_and_earlier_at_the_end_of_an_epoch(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_schedule, "time", played := PlayedClock())
    monkeypatch.setattr(
        checkpoint, "save", lambda *_, **__: played.sleep(0.4) or tmp_path
    )  # so the next is due in 40 seconds
    throughput = SimpleNamespace(awaited=0.0)
    reporter = SimpleNamespace(output=tmp_path, first=True, output_missing=False, write=lambda _: None)
    checkpointer = Checkpointer(0.0, dict, reporter, Clock(), throughput, None)
    assert checkpointer.save(5, awaited=True)
    due = []
    for seconds in (9, 1, 29, 1):
        played.sleep(seconds)
        due.append((checkpointer.is_due(epoch_ends=False), checkpointer.is_due(epoch_ends=True)))
    assert due == [(False, False), (False, True), (False, True), (True, True)]
    assert checkpointer.save(6, awaited=False)
    assert throughput.awaited == 0.4


@pytest.mark.parametrize("pause", [0.0, 1e9], ids=["at the end of the epoch", "at the end of the run"])
def test_the_last_step_is_saved_once(train, tmp_path, monkeypatch, pause):
    monkeypatch.setattr(checkpoint_schedule, "_EPOCH_CHECKPOINT_SECONDS", pause)
    assert not train("--checkpoint-minutes", pause)["stopped"]
    assert [line["step"] for line in lines(tmp_path, "checkpoint")] == [STEPS]


@pytest.mark.soak
@pytest.mark.parametrize("part", ["validation", "test"])
def test_a_run_stopped_after_its_last_step_resumes_to_the_same_end(train, tmp_path, monkeypatch, part):
    whole = train("--force")
    judge = Classification.evaluate

    def stopped(self, of, **how):
        if of == part:
            os.kill(os.getpid(), signal.SIGTERM)
        return judge(self, of, **how)

    with monkeypatch.context() as patch:
        patch.setattr(Classification, "evaluate", stopped)
        found = train("--force")
    assert (found["stopped"], found["steps"], found["accuracy"]) == (True, STEPS, None)
    assert [line["step"] for line in lines(tmp_path, "checkpoint")] == [STEPS]
    found = train("--resume")
    same = ("accuracy", "confusion", "validation", "steps", "rows_seen", "stopped")
    assert {name: found[name] for name in same} == {name: whole[name] for name in same}
