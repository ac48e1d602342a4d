"""The trainer's own tests, on this machine's CPU: whether the trainer works with its Python and its PyTorch.

A file of tests that needs an absent package is left out, and reported; it does not count as failed.
"""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from benchmarks.gpu.part import print_progress

ROOT = Path(__file__).parents[2]
_ABSENT = re.compile(r"E +ModuleNotFoundError: No module named '(\w+)")


def run(seconds: int) -> tuple[str, bool]:
    """Run all but the slow tests for at most `seconds`; returns the result in a line, and whether one failed."""
    if find_spec("pytest") is None:
        return "left out, because pytest is not installed", False
    together = ["-n", str(max(1, (os.cpu_count() or 1) // 2)), "--dist=loadfile"] if find_spec("xdist") else []
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", "--tb=short"]
    try:
        done = subprocess.run(
            [*command, *together, "--continue-on-collection-errors", "tests/trainer"],
            cwd=ROOT,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not done in {seconds} seconds", True
    lines = (done.stdout + done.stderr).splitlines()
    for line in lines:
        if line.startswith(("FAILED", "ERROR", "E  ")):
            print_progress(line[:200])
    return outcome(lines)


def outcome(lines: Sequence[str]) -> tuple[str, bool]:
    """The same result, from the lines that pytest printed."""
    counts = re.findall(r"(\d+) (passed|failed|skipped|errors?)\b", lines[-1]) if lines else []
    absent = [found[1] for line in lines if (found := _ABSENT.match(line))]
    errors = [line for line in lines if line.startswith("ERROR ")]
    files = [line for line in errors if "::" not in line]  # that could not be read
    told = [f"{number} {what}" for number, what in counts if not what.startswith("error")]
    if absent:
        told.append(f"{len(files)} files left out without {', '.join(sorted(set(absent)))}")
    wrong = len(errors) - min(len(files), len(absent))
    if wrong:
        told.append(f"{wrong} errors")
    return ", ".join(told) or "pytest gave no counts", not counts or wrong > 0 or any(w == "failed" for _, w in counts)
