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


class Run:
    """`shoal preprocess` of a file in a separate session."""

    def __init__(self, packed: Path, output: Path) -> None:
        self.output = output
        self.process = subprocess.Popen(
            [*COMMAND, "--input", str(packed), "--output", str(output)],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def until_there_is(self, pattern: str) -> None:
        until(lambda: list(self.output.glob(pattern)), every=0.02)

    def interrupt(self, to_all: bool) -> None:
        (os.killpg if to_all else os.kill)(self.process.pid, signal.SIGINT)

    def assert_is_gone(self) -> None:
        """Check that the command was interrupted, ended its child processes, and left no file."""
        try:
            printed = self.process.communicate(timeout=PATIENCE)[1].decode()
        finally:
            left = list(self._processes())
            for process in left:
                process.kill()
        assert (self.process.returncode, left) == (130, [])
        assert printed.splitlines()[-1] == "shoal: interrupted"
        assert "Traceback" not in printed
        assert not self.output.exists()

    def _processes(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            try:
                if os.getsid(process.pid) == self.process.pid and process.status() != psutil.STATUS_ZOMBIE:
                    yield process
            except (ProcessLookupError, psutil.Error):
                continue


@pytest.mark.parametrize("to_all", [True, False])
def test_an_interrupt_while_reading_a_gzip_ends_all_processes(packed: Path, tmp_path: Path, to_all: bool) -> None:
    run = Run(packed, tmp_path / "out")
    run.until_there_is(".shoal-work-*/tasks/**/stderr")
    run.interrupt(to_all)
    run.assert_is_gone()


@pytest.mark.soak
@pytest.mark.parametrize("to_all", [True, False])
def test_an_interrupt_at_any_moment_ends_everything_and_the_next_run_succeeds(
    packed: Path, tmp_path: Path, to_all: bool
) -> None:
    chance = random.Random(2)
    for moment in MOMENTS:
        run = Run(packed, tmp_path / "out")
        run.until_there_is(f".shoal-work-*/{moment}")
        time.sleep(chance.uniform(0, 0.2))
        run.interrupt(to_all)
        run.assert_is_gone()
    assert Run(packed, tmp_path / "out").process.wait(PATIENCE) == 0
