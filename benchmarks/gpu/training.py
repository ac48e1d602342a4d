"""Training runs in this process, on rows that are in memory already; all else is the trainer's own."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import torch

from trainer import start
from trainer.classification import task
from trainer.classification.data import TextData
from trainer.config import TrainConfig
from trainer.distributed.ranks import Ranks, join_process_group


@contextlib.contextmanager
def single_rank(device: torch.device) -> Iterator[Ranks]:
    """The trainer's process group of one rank; a CPU, which is not measured, gets one thread."""
    with join_process_group(None if device.type == "cuda" else 1) as ranks:
        yield ranks


def train(data: TextData, ranks: Ranks, **options: Any) -> dict[str, Any]:
    """Train with these options of a run; returns its summary."""
    with TemporaryDirectory() as folder, use_data(data):
        return start.train(TrainConfig(data=Path("generated"), output=Path(folder), **options), ranks)


@contextlib.contextmanager
def use_data(data: TextData) -> Iterator[None]:
    """Let runs use these rows instead of a file."""
    with mock.patch.object(task, "load_data", return_value=data):
        yield
