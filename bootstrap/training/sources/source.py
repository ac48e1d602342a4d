"""What a training learns from, and what a source has to know of the place where that happens.

A source is what the user named. It is prepared for a place, before anything costs money: whatever can be found wrong
must be found then.
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
    """What the ranks of a place can read."""

    reads_s3_alone = False
    """Whether they are on nodes, and texts are not read on this machine."""

    @property
    def readers(self) -> int:
        """How many readers a stream has there by default."""
        return 1

    @abstractmethod
    def dataset(self, address: str | None, bars: Bars) -> str:
        """Where they find the dataset at an address, which is brought there; None: the newest.

        Raises ShoalError where there is none, or they may not read it, and DataError for one that cannot be used.
        """

    def require_reads(self, address: str) -> None:  # noqa: B027
        """Raise ShoalError where they cannot read text at an address."""

    @property
    def preprocesses(self) -> bool:
        """Whether a node runs the jobs of preprocessing."""
        return False

    def uploaded(self, sources: tuple[FileSource, ...], name: str, bars: Bars) -> tuple[FileSource, ...]:  # noqa: ARG002
        """Where that node reads these files, of which those of this machine are brought there, under a name that stands
        for them. Raises ShoalError for files that it may not read."""
        return sources

    def require_common_folder(self) -> None:  # noqa: B027
        """Raise ShoalError where they have no folder in which all of them find what readers leave."""


class Staging(NamedTuple):
    """What a progress bar shows while nodes bring the data."""

    title: str
    total: int = 0
    unit: str = "row"


@dataclass(frozen=True)
class Sidecar:
    """What runs beside the ranks on this machine."""

    look: Callable[[], None] = lambda: None
    """Looks after it, again and again; its error ends the ranks."""
    read: Callable[[], Status] | None = None
    """What readers of an unbounded stream have done."""


class Prepared(ABC):
    """A source that is checked, and that the ranks of a place can read."""

    readers = 0
    """The processes that read for the ranks."""
    here: Path | None = None
    """Where the ranks find it on this machine; None where it is for nodes."""
    staging = Staging("copy the dataset to the nodes")
    inputs: tuple[str, ...] = ()
    """The addresses that the record of a run names."""

    @property
    @abstractmethod
    def called(self) -> str:
        """What a sentence about a run on nodes names it."""

    @abstractmethod
    def request(self) -> Mapping[str, Any]:
        """The fields of the request to the nodes that say what to learn from."""

    def work(self, config: TrainConfig, ranks: int) -> Training:  # noqa: ARG002
        """The work of learning from it. Raises ExperimentError where that is not known before it was read."""
        raise ExperimentError(f"how many rows {self.called} has is known when the nodes have read it")

    def resumed(self, before: Callable[[], RunRequest]) -> Self:  # noqa: ARG002
        """As a run learnt from it that now goes on, `before` returning its request. Raises ShoalError where it learnt
        from something else."""
        return self

    @contextmanager
    def beside(self, bars: Bars) -> Iterator[Sidecar]:  # noqa: ARG002
        """What has to run beside the ranks on this machine, until the end of the block."""
        yield Sidecar()


class Source(ABC):
    """What the user named to learn from."""

    @abstractmethod
    def prepare(self, reach: DataAccess, config: TrainConfig, bars: Bars) -> Prepared:
        """Check it for a place, and bring there what its ranks could not read.

        Raises DataError for data that cannot be used, and ShoalError for what the place cannot read.
        """

    @abstractmethod
    def digest(self) -> str | None:
        """What stands for its content; None where that is known at the place alone."""

    def size(self) -> DatasetSize | None:
        """The rows of a dataset; None where they are not known yet."""
        return None
