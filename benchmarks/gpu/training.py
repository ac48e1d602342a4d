"""A training run, in this process and on rows that are in memory already; all else is the trainer's own."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import torch

from trainer import loop
from trainer.classification import task
from trainer.classification.data import TextData
from trainer.config import TrainConfig
from trainer.distributed.ranks import Ranks, join_process_group


@contextlib.contextmanager
def alone(device: torch.device) -> Iterator[Ranks]:
    """A process group of one rank, as the trainer makes it; a CPU, which is none of what is measured, has a thread."""
    with join_process_group(None if device.type == "cuda" else 1) as ranks:
        yield ranks


def trained(data: TextData, ranks: Ranks, **options: Any) -> dict[str, Any]:
    """Train as these options of a run say; returns what its summary does."""
    with TemporaryDirectory() as folder, given(data):
        return loop.train(TrainConfig(data=Path("generated"), output=Path(folder), **options), ranks)


@contextlib.contextmanager
def given(data: TextData) -> Iterator[None]:
    """Have runs find these rows, and read no file."""
    with mock.patch.object(task, "load_data", return_value=data):
        yield
