"""Runs other programs that use Shoal, in a separate folder."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def environment(**more: str) -> dict[str, str]:
    """Return an environment without GPUs for a program; this project is installed."""
    return {**os.environ, "CUDA_VISIBLE_DEVICES": "", **more}


def run(folder: Path, *command: object, **more: str) -> str:
    """Run a command; return its output."""
    words = list(map(str, command))
    done = subprocess.run(words, cwd=folder, env=environment(**more), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_python(folder: Path, *words: object, **more: str) -> str:
    """Run Python with these arguments; return its output."""
    return run(folder, sys.executable, *words, **more)
