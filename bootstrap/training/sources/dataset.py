"""A dataset, made by a preprocessing."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from bootstrap.progress import Bars
from bootstrap.training.sources.source import Prepared, Reach, Source
from corpus.dataset import Dataset, open_dataset
from corpus.reading.s3 import is_s3
from corpus.reading.storage import open_range, size_of
from corpus.rules import VALIDATION_SHARE
from experiments.forecast.gpu_rates import GpuModel, LstmClassifier, lstm_operations
from experiments.forecast.training import TrainingWork
from experiments.plans.prices import DatasetSize
from trainer.config import TrainConfig
from trainer.embeddings.vectors import vectors_size
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
            return DatasetSize(len(dataset.train), len(dataset.test), _row_words(dataset))


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
        size = size_of(self.address)
        with opened_dataset(self.address) as dataset:
            every, test = len(dataset.train), len(dataset.test)
            batch = sgd_batch(mean_words(dataset)) if config.batch_follows_texts else config.batch_for(ranks)
        validation = max(1, int(every * VALIDATION_SHARE))
        rows = config.rows_to_learn(every - validation)
        return TrainingWork(
            rows=rows,
            validation=validation,
            test=test,
            epochs=config.epochs_for(steps_per_epoch(rows, batch)),
            global_batch=batch,
            balance=config.balance,
            checkpoint_minutes=config.checkpoint_minutes,
            row_bytes=size / (every + test),
        )

    def model_on_gpus(self, config: TrainConfig) -> GpuModel:
        """That of its texts. Raises DataError for a dataset that cannot be used."""
        with opened_dataset(self.address) as dataset:
            words = min(_row_words(dataset), config.row_length)
        size = config.embedding
        if size is None:
            assert config.embeddings is not None
            size = vectors_size(config.embeddings)
        return LstmClassifier(lstm_operations(embedding=size, hidden=config.hidden, layers=config.layers, words=words))


@contextmanager
def opened_dataset(address: str) -> Iterator[Dataset]:
    """A dataset, closed at the end; of one on S3 only what is used is fetched. Raises DataError as `open_dataset`."""
    if is_s3(address):
        with closing(open_range(address, ahead=_READ_AHEAD)) as file, open_dataset(address, file) as dataset:
            yield dataset
    else:
        with open_dataset(address) as dataset:
            yield dataset


def mean_words(dataset: Dataset) -> float:
    """Words of a row to learn from, on average."""
    arrays = dataset.train.arrays
    if dataset.settings.ragged:
        return len(arrays["tokens"]) / max(1, len(dataset.train))
    return float(arrays["lengths"][:].mean()) if len(dataset.train) else 0.0


def _row_words(dataset: Dataset) -> float:
    """Words of a row on average, or at most, where the mean would have to be read."""
    return mean_words(dataset) if dataset.settings.ragged else float(dataset.settings.row_length)
