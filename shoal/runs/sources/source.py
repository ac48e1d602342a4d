"""Base classes for sources of training data, and for the access of a backend to data.

A source is the data that the user named. It is prepared for a backend before anything costs money. So `prepare` must
find every error that can be found without starting nodes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from common.errors import ExperimentError
from corpus.dataset_settings import DatasetSize
from corpus.reading.sources import Source
from corpus.stream.progress import Status
from trainer.config import TrainConfig


class DataAccess(ABC):
    """Ways in which the ranks of a backend access data."""

    reads_only_s3 = False
    """True if the ranks are on nodes. This machine then does not read the texts."""

    @property
    def readers(self) -> int:
        """Default number of readers of a stream."""
        return 1

    @abstractmethod
    def dataset(self, address: str | None) -> str:
        """Make a dataset available to the ranks, and return the address from which they read it.

        Without an address, use the newest dataset. Raises ShoalError if the dataset does not exist or the ranks are not
        allowed to read it. Raises DataError if the dataset is invalid.
        """

    def require_readable(self, address: str) -> None:  # noqa: B027
        """Raise ShoalError if the ranks cannot read text at an address."""

    def check_options(self, options: Mapping[str, Any]) -> None:  # noqa: B027
        """Raise ShoalError if the ranks cannot read a file that an option names. `options`: values by option name."""

    @property
    def preprocesses(self) -> bool:
        """True if the node that trains also runs the preprocessing jobs."""
        return False

    def upload_inputs(self, sources: tuple[Source, ...], name: str) -> tuple[Source, ...]:
        """Return the files with the addresses from which the node that preprocesses reads them.

        Files of this machine are uploaded to a folder with this name.

        Raises ShoalError for files that the node is not allowed to read.
        """
        raise NotImplementedError

    def require_common_folder(self) -> None:  # noqa: B027
        """Raise ShoalError if the nodes do not share a folder for the parts that readers write."""


class Staging(NamedTuple):
    """Title, total and unit of the progress bar while nodes copy the data."""

    title: str
    total: int = 0
    unit: str = "row"


@dataclass(frozen=True)
class Sidecar:
    """Processes that run on this machine at the same time as the ranks."""

    check: Callable[[], None] = lambda: None
    """Function that checks the processes. It is called repeatedly. If it raises an error, the ranks are stopped."""
    read: Callable[[], Status] | None = None
    """Function that returns the progress of the readers of an unbounded stream; None without such readers."""


class Prepared(ABC):
    """Source that was checked and made available to the ranks of a backend."""

    readers = 0
    """Number of readers; 0 if the source is not a stream."""
    local_path: Path | None = None
    """Path from which ranks on this machine read the data; None for ranks on nodes."""
    staging = Staging("copy the dataset to the nodes")
    is_endless = False
    """True if the source is an unbounded stream."""
    inputs: tuple[str, ...] = ()
    """Addresses of the inputs, to be reported with the results of the run."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Name of the source in messages about a run on nodes."""

    @abstractmethod
    def request(self) -> Mapping[str, Any]:
        """Return the fields of the request that name the source."""

    def size(self) -> DatasetSize:
        """Return the size of the dataset. Raises ExperimentError if the size is unknown until the source is read."""
        raise ExperimentError(f"the number of rows of {self.label} is unknown until the nodes have read it")

    @contextmanager
    def sidecar(self) -> Iterator[Sidecar]:
        """Run, for a block, the processes that ranks on this machine need."""
        yield Sidecar()


class DataSource(ABC):
    """Training data, as the user named it."""

    @abstractmethod
    def prepare(self, access: DataAccess, config: TrainConfig) -> Prepared:
        """Check that a backend can use the source. If its ranks cannot read the data, copy the data to it.

        Raises DataError if the data is invalid, and ShoalError if the backend cannot read the data.
        """
