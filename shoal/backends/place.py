"""Base classes of places and their runs. A place executes training runs.

Commands use places only through these two classes. To add a place, add a file to this folder.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from common.errors import TrainingError
from infra.gpu_nodes import PlannedNode
from shoal.runs.run_view import RecordView
from shoal.runs.sources.source import DataAccess, DataSource, Prepared
from trainer.config import TrainConfig
from trainer.output.run_files import MODEL, has_model, require_free_output, was_stopped


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """Results of an ended run, after they were copied to the output folder."""

    summary: dict[str, Any] | None
    """Content of summary.json; None if it is missing."""
    failure: Exception | None
    """Error that describes why the run failed; None if it did not fail."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Fields that the command adds to the summary."""
    launch: Mapping[str, Any] = field(default_factory=dict)
    """Fields that the command adds to launch.json."""


class Run(ABC):
    """Run at a place, with a source that was prepared for this place."""

    config: TrainConfig
    prepared: Prepared
    can_detach = False
    """True if the run can continue without its command."""

    def resources(self) -> AbstractContextManager[object]:
        """Start the resources that cost money, such as nodes, for a block, and release them at the end of the block."""
        return nullcontext()

    @abstractmethod
    def started(self) -> AbstractContextManager[object]:
        """Start the run for a block.

        After the block, no process of the run is left. Raises Detached if the command detaches.
        """

    def wait_for_data(self) -> None:  # noqa: B027
        """Wait until the ranks have their data. An error or an interrupt stops the run."""

    @abstractmethod
    def record(self) -> RecordView:
        """Return a view that shows the run's record."""

    @abstractmethod
    def is_over(self) -> bool:
        """Return whether the run has ended. Raises ShoalError if the run has not ended but cannot continue."""

    @abstractmethod
    def stop(self) -> None:
        """Request a stop with a checkpoint. Repeated calls are harmless."""

    def detaches_on(self, interrupt: KeyboardInterrupt) -> bool:  # noqa: ARG002
        """Return whether this interrupt ends only the command, while the run continues."""
        return False

    def detached_fields(self) -> Mapping[str, Any]:
        """Return the fields that the command reports when it detaches from the run."""
        return {}

    def spent(self) -> float | None:
        """Return the cost so far in dollars; None if the cost is unknown, or if the run costs nothing."""
        return None

    @abstractmethod
    def collect(self, *, stopped: bool) -> RunResult:
        """Copy the results to the output folder. Raises ShoalError if the summary is invalid."""


class Place(DataAccess):
    """Place where training runs execute."""

    name: str
    pause: float
    """Seconds between two checks of a run."""
    options: Mapping[str, Sequence[str]]
    """Options that select the place on a command line: the words of each option's value, by name."""
    shares: bool = False
    """True if the nodes of the place have a shared file system."""

    def finished_before(self, config: TrainConfig) -> dict[str, Any] | None:
        """Return the summary of the run to resume, with `finished_before` true, if this run has finished; otherwise
        None.

        A place that itself chooses the run to resume returns None. Raises TrainingError if the resumed run would
        replace a finished model.
        """
        if not config.resume:
            require_free_output(config.output, force=config.force)
        elif has_model(config.output) and not was_stopped(config.output):
            raise TrainingError(
                f"the resumed run would replace the finished model {config.output / MODEL}; choose another --output"
            )
        return None

    @abstractmethod
    def prepare(self, source: DataSource, config: TrainConfig) -> Run:
        """Prepare a run as far as possible without a step that costs money.

        Raises the same errors as `Source.prepare`, and ShoalError if another run occupies the place.
        """

    def nodes(self, *, readers: bool = False) -> list[PlannedNode]:  # noqa: ARG002
        """Return the nodes that a run would start. If `readers` is true, also return the reader nodes."""
        return []

    def hourly(self, nodes: Sequence[PlannedNode]) -> float | None:  # noqa: ARG002
        """Return the cost of these nodes in dollars per hour, at on-demand prices; None if a price is unknown."""
        return None
