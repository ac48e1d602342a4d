"""A dataset, made by a preprocessing."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from bootstrap.progress import Bars
from bootstrap.training.sources.source import Prepared, Reach, Source
from corpus.dataset import Dataset, open_dataset
from corpus.reading.s3 import is_s3
from corpus.reading.storage import open_range
from corpus.rules import VALIDATION_SHARE
from experiments.forecast.training import TrainingWork
from experiments.plans.prices import DatasetSize
from trainer.config import TrainConfig
from trainer.options.classifier_options import sgd_batch
from trainer.order import steps_per_epoch

_READ_AHEAD = 1 << 20


class DatasetSource(Source):
    """A dataset at an address, a path or s3://...; None: the newest of the place."""

    def __init__(self, address: str | None) -> None:
        self.address = address

    def prepare(self, reach: Reach, config: TrainConfig, bars: Bars) -> "PreparedDataset":  # noqa: ARG002
        """Find it."""
        return PreparedDataset(reach.dataset(self.address, bars))

    def digest(self) -> str | None:
        """That of its rows."""
        if self.address is None:
            return None
        with opened_dataset(self.address) as dataset:
            return dataset.digest

    def size(self) -> DatasetSize | None:
        """Its rows."""
        if self.address is None:
            return None
        with opened_dataset(self.address) as dataset:
            return DatasetSize(len(dataset.train), len(dataset.test))


class PreparedDataset(Prepared):
    """A dataset that ranks can read."""

    def __init__(self, address: str, inputs: tuple[str, ...] = ()) -> None:
        """`inputs`: the texts that it was made of for this run."""
        self.address, self.inputs = address, inputs
        self.here = None if is_s3(address) else Path(address)

    @property
    def called(self) -> str:
        """Its address."""
        return self.address

    def request(self) -> Mapping[str, Any]:
        """Its address."""
        return {"dataset": self.address}

    def work(self, config: TrainConfig, ranks: int) -> TrainingWork:
        """By its rows. Raises DataError for one that cannot be used."""
        with opened_dataset(self.address) as dataset:
            every, test = len(dataset.train), len(dataset.test)
            batch = sgd_batch(_mean_words(dataset)) if config.batch_follows_texts else config.batch_for(ranks)
        validation = max(1, int(every * VALIDATION_SHARE))
        rows = max(1, round(config.train_share * (every - validation)))
        return TrainingWork(
            rows=rows,
            validation=validation,
            test=test,
            epochs=config.epochs_for(steps_per_epoch(rows, batch)),
            global_batch=batch,
            balance=config.balance,
            checkpoint_minutes=config.checkpoint_minutes,
        )


@contextmanager
def opened_dataset(address: str) -> Iterator[Dataset]:
    """A dataset, closed at the end; of one on S3 only what is used is fetched. Raises DataError as `open_dataset`."""
    if is_s3(address):
        with closing(open_range(address, ahead=_READ_AHEAD)) as file, open_dataset(address, file) as dataset:
            yield dataset
    else:
        with open_dataset(address) as dataset:
            yield dataset


def _mean_words(dataset: Dataset) -> float:
    """Words of a row to learn from, on average."""
    arrays = dataset.train.arrays
    if dataset.settings.ragged:
        return len(arrays["tokens"]) / max(1, len(dataset.train))
    return float(arrays["lengths"][:].mean()) if len(dataset.train) else 0.0
