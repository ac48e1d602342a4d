"""Base classes of the sources of a training, and of a place's access to data.

A source is the data that the user named. It is prepared for a place before anything costs money, so `prepare` must find
every error that can be found early.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from bootstrap.agent.documents import RunRequest
from bootstrap.progress import Bars
from common.errors import ExperimentError
from corpus.reading.sources import Source as FileSource
from corpus.stream.progress import Status
from experiments.forecast import Training
from experiments.plans.prices import DatasetSize
from trainer.config import TrainConfig


class DataAccess(ABC):
    """Access of a place's ranks to data."""

    reads_only_s3 = False
    """True if the ranks are on nodes, so that this machine does not read the texts."""

    @property
    def readers(self) -> int:
        """Default number of readers of a stream."""
        return 1

    @abstractmethod
    def dataset(self, address: str | None, bars: Bars) -> str:
        """Make a dataset available to the ranks, and return its address there. For None, use the newest dataset.

        Raises ShoalError if it does not exist or the ranks may not read it, and DataError if it is invalid.
        """

    def require_readable(self, address: str) -> None:  # noqa: B027
        """Raise ShoalError if the ranks cannot read text at an address."""

    @property
    def preprocesses(self) -> bool:
        """True if a node runs the preprocessing jobs."""
        return False

    def upload_inputs(self, sources: tuple[FileSource, ...], name: str, bars: Bars) -> tuple[FileSource, ...]:  # noqa: ARG002
        """Return the files at their addresses for that node. Files of this machine are uploaded below `name`.

        Raises ShoalError for files that the node may not read.
        """
        return sources

    def require_common_folder(self) -> None:  # noqa: B027
        """Raise ShoalError if the nodes have no common folder for the parts that readers write."""


class Staging(NamedTuple):
    """Title and total of the progress bar while nodes copy the data."""

    title: str
    total: int = 0
    unit: str = "row"


@dataclass(frozen=True)
class Sidecar:
    """Processes that run together with the ranks on this machine."""

    check: Callable[[], None] = lambda: None
    """Checks the processes. It is called repeatedly, and its error ends the ranks."""
    read: Callable[[], Status] | None = None
    """Returns the progress of readers of an unbounded stream."""


class Prepared(ABC):
    """Source that was checked and made available to the ranks of a place."""

    readers = 0
    """Number of readers."""
    local_path: Path | None = None
    """Path for ranks on this machine; None for nodes."""
    staging = Staging("copy the dataset to the nodes")
    inputs: tuple[str, ...] = ()
    """Addresses of the inputs, for the record of a run."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Name of the source in messages about a run on nodes."""

    @abstractmethod
    def request(self) -> Mapping[str, Any]:
        """Return the fields of the request that name the source."""

    def work(self, config: TrainConfig, ranks: int) -> Training:  # noqa: ARG002
        """Return the work of a training. Raises ExperimentError if it is unknown before the source is read."""
        raise ExperimentError(f"the number of rows of {self.label} is unknown until the nodes have read it")

    def resumed(self, before: Callable[[], RunRequest]) -> Self:  # noqa: ARG002
        """Return the source for a resumed run; `before` returns the request of that run.

        Raises ShoalError if that run learned from another source.
        """
        return self

    @contextmanager
    def sidecar(self, bars: Bars) -> Iterator[Sidecar]:  # noqa: ARG002
        """Run the processes that ranks on this machine need, until the end of the block."""
        yield Sidecar()


class Source(ABC):
    """Data to learn from, as the user named it."""

    @abstractmethod
    def prepare(self, access: DataAccess, config: TrainConfig, bars: Bars) -> Prepared:
        """Check that a place can use the source. Copy data to the place that its ranks could not read at their address.

        Raises DataError for invalid data, and ShoalError for data that the place cannot read.
        """

    @abstractmethod
    def digest(self) -> str | None:
        """Return a digest of the content; None if only the place knows it."""

    def size(self) -> DatasetSize | None:
        """Return the size of a dataset; None if it is still unknown."""
        return None
