"""Signals that end `shoal` leave no process and no partial output, and a training leaves a checkpoint."""

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from experiments.records import read_run
from tests.bootstrap.cli.command import shoal
from tests.processes import MARK, left_behind
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
    command = [sys.executable, "-X", "importtime", "-m", "bootstrap.cli.main", "preprocess", "--local"]
    process = subprocess.Popen(
        [*command, "--input", reviews, "--output", tmp_path / "out"], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.split()[-1:] == ["psutil"]:
            break
    process.send_signal(signal.SIGINT)
    _, printed = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "shoal: interrupted" in printed
    assert "Traceback" not in printed


COMMAND = [sys.executable, "-m", "bootstrap.cli.main", "preprocess", "--local"]
# Enough bytes for two parallel tasks; a single gzip file makes only one.
PLAIN_BYTES = 80 << 20
# Patterns of files that appear in the work folder one after the other. The work continues after the last one.
MOMENTS = ("", "texts", "texts/*", "rows", "rows/*", "shoal-merging-*")


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> Path:
    """One large gzip of reviews."""
    path = tmp_path_factory.mktemp("reviews") / "reviews.json.gz"
    letters = str.maketrans("0123456789", "abcdefghij")
    texts = (f"lamp {str(number).translate(letters)} {'bright ' * 50}" for number in range(3_000))
    block = b"".join(
        json.dumps({"reviewText": text, "overall": 1 + number % 5}).encode() + b"\n"
        for number, text in enumerate(texts)
    )
    with gzip.open(path, "wb", 1) as file:
        for _ in range(PLAIN_BYTES // len(block)):
            file.write(block)
    return path


def start(packed: Path, output: Path) -> "subprocess.Popen[str]":
    """Start `shoal preprocess` in a separate session."""
    command = [*COMMAND, "--input", str(packed), "--output", str(output)]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, start_new_session=True, text=True, **pipes)  # type: ignore[call-overload]


def processes_of(session: int) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except (ProcessLookupError, psutil.Error):
            continue


def interrupt(packed: Path, output: Path, moment: str, *, to_all: bool, wait: float = 0.0) -> None:
    """Interrupt the command when files match a pattern. Check that it ends its child processes and leaves no file."""
    run = start(packed, output)
    until(lambda: list(output.glob(f".shoal-work-*/{moment}")), every=0.02)
    time.sleep(wait)
    (os.killpg if to_all else os.kill)(run.pid, signal.SIGINT)
    try:
        printed = run.communicate(timeout=PATIENCE)[1]
    finally:
        left = list(processes_of(run.pid))
        for process in left:
            process.kill()
    assert (run.returncode, left) == (130, [])
    assert printed.splitlines()[-1] == "shoal: interrupted"
    assert "Traceback" not in printed
    assert not output.exists()


@pytest.mark.parametrize("to_all", [True, False])
def test_an_interrupt_while_reading_a_gzip_ends_all_processes(packed, tmp_path, to_all) -> None:
    interrupt(packed, tmp_path / "out", "texts", to_all=to_all)


@pytest.mark.soak
@pytest.mark.parametrize("to_all", [True, False])
def test_an_interrupt_at_any_moment_ends_everything_and_the_next_run_succeeds(packed, tmp_path, to_all) -> None:
    chance = random.Random(2)
    for moment in MOMENTS:
        interrupt(packed, tmp_path / "out", moment, to_all=to_all, wait=chance.uniform(0, 0.2))
    assert start(packed, tmp_path / "out").wait(PATIENCE) == 0
