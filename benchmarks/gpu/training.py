"""Runs the trainer in this process, on rows in memory."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any
from unittest import mock

import torch

from trainer import start
from trainer.classification import task
from trainer.classification.data import TextData
from trainer.config import configured
from trainer.distributed.ranks import Ranks, join_process_group


@contextlib.contextmanager
def single_rank(device: torch.device) -> Iterator[Ranks]:
    """Join the trainer's process group of one rank. A CPU, which is not measured, gets one thread."""
    with join_process_group(None if device.type == "cuda" else 1) as ranks:
        yield ranks


def train(data: TextData, ranks: Ranks, **options: Any) -> dict[str, Any]:
    """Train with these options of a run, and return its summary."""
    with TemporaryDirectory() as folder, mock.patch.object(task, "load_data", return_value=data):
        config = configured({"model": "lstm", "data": Path("generated"), "output": Path(folder), **options})
        return start.train(config, ranks)


@contextlib.contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Ask the training in this process to stop after this time, as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)  # ignore a signal after the run
    timer = Timer(seconds, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGTERM, before)
