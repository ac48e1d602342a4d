"""Trainings and other programs on ranks of this machine, as benchmarks run them."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from bootstrap.progress import Bars
from bootstrap.training.places.this_machine import ThisMachine
from bootstrap.training.sources.dataset import DatasetSource
from bootstrap.training.train import train
from trainer.config import RANK_ENVIRONMENT, TrainConfig


def train_here(config: TrainConfig, *, ranks: int, bars: Bars) -> dict[str, Any]:
    """Train on the dataset of `config` with so many ranks; returns the summary."""
    return train(DatasetSource(str(config.data)), config, ThisMachine(ranks), bars)


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
