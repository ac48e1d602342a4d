"""Interrupts of `shoal preprocess` at any moment: sent to the process alone, as by `kill`, or to its whole group."""

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

from tests.waiting import PATIENCE, until

COMMAND = [sys.executable, "-m", "bootstrap.cli.main", "preprocess", "--local", "--runner", "local"]
# Enough bytes for two parallel tasks; a single gzip file makes only one.
PLAIN_BYTES = 80 << 20
# Patterns of files that appear in the work folder one after the other. The work continues after the last one.
MOMENTS = ("", "to-read", "tasks", "tasks/**/mapper", "tasks/**/stderr", "tasks/**/reducer", "counted/part-*")


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
def test_an_interrupt_while_reading_a_gzip_ends_all_processes(packed: Path, tmp_path: Path, to_all: bool) -> None:
    interrupt(packed, tmp_path / "out", "tasks/**/stderr", to_all=to_all)


@pytest.mark.soak
@pytest.mark.parametrize("to_all", [True, False])
def test_an_interrupt_at_any_moment_ends_everything_and_the_next_run_succeeds(
    packed: Path, tmp_path: Path, to_all: bool
) -> None:
    chance = random.Random(2)
    for moment in MOMENTS:
        interrupt(packed, tmp_path / "out", moment, to_all=to_all, wait=chance.uniform(0, 0.2))
    assert start(packed, tmp_path / "out").wait(PATIENCE) == 0
