"""Signals that end `shoal` leave no process, and a training leaves a checkpoint."""

import json
import os
import signal
import subprocess
import sys

import pytest

from experiments.records import read_run
from tests.processes import MARK, left_behind
from tests.shoal.cli.command import shoal
from tests.waiting import PATIENCE, until


@pytest.mark.slow
def test_ctrl_c_stops_training_with_a_checkpoint_and_resume_continues(dataset, tmp_path) -> None:
    mark = os.fspath(tmp_path)
    options = ("--local", "--model", "lstm", "--epochs", "10", "--json")
    command = ["shoal", "train", *options, "--data", dataset, "--output", tmp_path]
    process = subprocess.Popen(
        [*map(os.fspath, command), "--nodes", "2", "--slow", "0:9", "1:9"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, MARK: mark},
    )
    record = tmp_path / "record.jsonl"
    until(lambda: record.exists() and '"kind": "step"' in record.read_text())
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert (json.loads(printed)["stopped"], json.loads(printed)["stopped_by"]) == (True, "SIGINT")
    assert left_behind(mark) == []
    again = shoal(*command[1:], "--resume")
    assert again.returncode == 0, again.stderr
    resumed = json.loads(again.stdout)
    assert resumed["stopped"] is False
    assert resumed["rows_seen"] == 10 * resumed["rows"]
    run = read_run(tmp_path)
    steps = [line.step for line in run.steps]
    assert steps == sorted(set(steps))
    assert (steps[0], steps[-1]) == (1, resumed["steps"])
    assert [line.epoch for line in run.epochs] == list(range(1, 11))
    assert run.test
    assert run.test.epoch == 10


def test_an_interrupt_during_imports_ends_the_command(reviews, tmp_path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "shoal.cli.main", "preprocess", "--local"]
    process = subprocess.Popen(
        [*command, "--input", reviews, "--output", tmp_path / "out"], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.split()[-1:] == ["numpy"]:
            break
    process.send_signal(signal.SIGINT)
    _, printed = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "shoal: interrupted" in printed
    assert "Traceback" not in printed
