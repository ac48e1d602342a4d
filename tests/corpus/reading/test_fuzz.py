"""Damaged lines: no crash, and the same reviews, counts, words and digests as by the oracle and the plain functions."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus.reading.fuzz import fuzz

LINES = 1_000_000
PROCESSES = 2


def test_mutated_lines_are_read_as_the_oracle_reads_them(tmp_path: Path) -> None:
    assert max(fuzz(0, 20_000, tmp_path)) >= 20_000


@pytest.mark.soak
def test_millions_of_mutated_lines_are_read_as_the_oracle_reads_them() -> None:
    command = [sys.executable, "-m", "tests.corpus.reading.fuzz", f"--lines={LINES}"]
    running = [
        subprocess.Popen([*command, f"--seed={seed}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for seed in range(1, 1 + PROCESSES)
    ]
    said = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0] * PROCESSES, "".join(said)
