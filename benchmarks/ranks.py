"""Runs training and other programs on ranks of this machine, for benchmarks."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from shoal.backends.local import LocalBackend
from shoal.runs.sources.dataset import DatasetSource
from shoal.runs.train import train
from trainer.config import RANK_ENVIRONMENT, TrainConfig


def train_here(config: TrainConfig, *, ranks: int) -> dict[str, Any]:
    """Train on the dataset of `config` with this number of ranks, and return the summary."""
    return train(DatasetSource(str(config.data)), config, LocalBackend(ranks))


def run_on_ranks(ranks: int, module: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Run `module` by torchrun with a JSON object as its argument, and return the JSON object that it prints last."""
    torchrun = ["-m", "trainer.launch", "--standalone", f"--nproc-per-node={ranks}"]
    done = subprocess.run(
        [sys.executable, *torchrun, "-m", module, json.dumps(options)],
        env={**os.environ, **RANK_ENVIRONMENT},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    printed: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return printed
