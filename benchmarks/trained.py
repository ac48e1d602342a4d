"""A training on this machine, as benchmarks make it."""

from typing import Any

from bootstrap.progress import Bars
from bootstrap.training.places.this_machine import ThisMachine
from bootstrap.training.sources.dataset import DatasetSource
from bootstrap.training.train import train
from trainer.config import TrainConfig


def train_here(config: TrainConfig, *, ranks: int, bars: Bars) -> dict[str, Any]:
    """Train on the dataset of `config` with so many ranks; returns the summary."""
    return train(DatasetSource(str(config.data)), config, ThisMachine(ranks), bars)
