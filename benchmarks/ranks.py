"""Runs a module on several ranks of this machine, with the environment of Shoal's own ranks."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from trainer.config import RANK_ENVIRONMENT


def run_on_ranks(ranks: int, module: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Run `module` by torchrun, with a JSON object as its argument; returns the JSON object that it prints last."""
    torchrun = ["-m", "trainer.launch", "--standalone", f"--nproc-per-node={ranks}"]
    done = subprocess.run(
        [sys.executable, *torchrun, "-m", module, json.dumps(asked)],
        env={**os.environ, **RANK_ENVIRONMENT},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    printed: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return printed
