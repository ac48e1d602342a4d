"""Dataset for nodes of the embedded AWS."""

from pathlib import Path

import boto3
import numpy as np

from common.progress import ProgressReporter
from corpus.dataset import RowBlock, write_dataset
from corpus.dataset_settings import Settings
from tests.fleet import BUCKET

DATASET = f"s3://{BUCKET}/datasets/{1:032x}/dataset.h5"


def rows(count: int) -> RowBlock:
    generator = np.random.default_rng(count)
    labels = (generator.random(count) < 0.5).astype(np.uint8)
    tokens = (2 + 10 * labels[:, None] + generator.integers(0, 10, (count, 10))).astype(np.uint16)
    return RowBlock(tokens, np.full(count, 10, np.uint16), labels, labels * 4 + 1)


def made_dataset(path: Path, test: int = 200) -> Path:
    """Write a small dataset; return its path."""
    words = [f"word{letter}" for letter in "abcdefghijklmnopqrst"]
    settings = Settings(row_length=10, vocabulary_size=20)
    write_dataset(path, train=rows(2000), test=rows(test), vocabulary=words, settings=settings)
    return path


def checkpoints() -> list[str]:
    found = boto3.Session().client("s3").list_objects_v2(Bucket=BUCKET, Prefix="runs/").get("Contents", [])
    return [each["Key"] for each in found if "/checkpoints/" in each["Key"]]


class Impatient(ProgressReporter):
    """Reporter that raises KeyboardInterrupt at the first step."""

    def __init__(self) -> None:
        self._stage = ""

    def stage(self, name: str, total: int = 0, unit: str | None = None) -> None:
        self._stage = name

    def at(self, done: int) -> None:
        if self._stage == "train" and done:
            self._stage = "stop"
            raise KeyboardInterrupt
