"""Programs of somebody else's, run in a folder of their own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def environment(**more: str) -> dict[str, str]:
    """The environment of a program without GPUs; this project is installed."""
    return {**os.environ, "CUDA_VISIBLE_DEVICES": "", **more}


def run(folder: Path, *command: object, **more: str) -> str:
    """Run a command to its end; what it printed."""
    words = list(map(str, command))
    done = subprocess.run(words, cwd=folder, env=environment(**more), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_python(folder: Path, *words: object, **more: str) -> str:
    """Run Python with these words; what it printed."""
    return run(folder, sys.executable, *words, **more)
