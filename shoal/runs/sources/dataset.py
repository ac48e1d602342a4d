"""Source of training data: a dataset that preprocessing wrote."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from corpus.dataset import Dataset, open_dataset
from corpus.dataset_settings import DatasetSize
from corpus.reading.s3 import is_s3
from corpus.reading.storage import open_range
from shoal.runs.sources.source import DataAccess, DataSource, Prepared
from trainer.config import TrainConfig

_READ_AHEAD = 1 << 20


class DatasetSource(DataSource):
    """Dataset at an address (a path or s3://...). Without an address, the newest dataset of the backend."""

    def __init__(self, address: str | None) -> None:
        self.address = address

    def prepare(self, access: DataAccess, config: TrainConfig) -> "PreparedDataset":  # noqa: ARG002
        return PreparedDataset(access.dataset(self.address))


class PreparedDataset(Prepared):
    """Dataset that the ranks can read."""

    def __init__(self, address: str, inputs: tuple[str, ...] = ()) -> None:
        """`inputs` are the addresses of the texts if the dataset was created from texts for this run."""
        self.address, self.inputs = address, inputs
        self.local_path = None if is_s3(address) else Path(address)

    @property
    def label(self) -> str:
        return self.address

    def request(self) -> Mapping[str, Any]:
        return {"dataset": self.address}

    def size(self) -> DatasetSize:
        """Return the size of the dataset. Raises DataError if the dataset is invalid."""
        with opened_dataset(self.address) as dataset:
            return dataset.size


@contextmanager
def opened_dataset(address: str) -> Iterator[Dataset]:
    """Open a dataset for a block.

    From S3, read only the bytes that are used. Raises the same errors as `open_dataset`.
    """
    if is_s3(address):
        with closing(open_range(address, ahead=_READ_AHEAD)) as file, open_dataset(address, file) as dataset:
            yield dataset
    else:
        with open_dataset(address) as dataset:
            yield dataset
