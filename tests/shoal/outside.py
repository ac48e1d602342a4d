"""Runs other programs that use Shoal, in a separate folder."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def run(folder: Path, *command: object) -> str:
    """Run a command without GPUs; return its output. This project is installed."""
    words, environment = list(map(str, command)), {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_python(folder: Path, *words: object) -> str:
    """Run Python with these arguments; return its output."""
    return run(folder, sys.executable, *words)
