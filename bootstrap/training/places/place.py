"""Base classes of places, where training happens, and of runs at a place.

Commands use places only through these two classes, so a new place is a new file in this folder.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from bootstrap.progress import Bars
from bootstrap.training.run_view import RecordView
from bootstrap.training.sources.source import DataAccess, Prepared, Source
from common.errors import TrainingError
from experiments.forecast import Node
from trainer.config import TrainConfig
from trainer.output.run_files import MODEL, has_model, require_free_output, was_stopped


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """Results of an ended run in its output."""

    summary: dict[str, Any] | None
    """Content of summary.json; None if it is missing."""
    failure: Exception | None
    """Why the run failed; None if it did not fail."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """More fields for the summary."""
    launch: Mapping[str, Any] = field(default_factory=dict)
    """More fields for launch.json."""


class Run(ABC):
    """Run at a place, with a prepared source."""

    config: TrainConfig
    prepared: Prepared
    can_detach = False
    """True if the run can continue without its command."""

    def resources(self, bars: Bars) -> AbstractContextManager[object]:  # noqa: ARG002
        """Hold the resources that cost money, such as nodes, until the end of the block."""
        return nullcontext()

    @abstractmethod
    def started(self, bars: Bars) -> AbstractContextManager[object]:
        """Start the run for a block, after which nothing of it runs. Raises Detached if the command detaches."""

    def wait_for_data(self, bars: Bars) -> None:  # noqa: B027
        """Wait until the ranks have their data. An error or an interrupt stops the run."""

    @abstractmethod
    def record(self, bars: Bars) -> RecordView:
        """Return the view of the run's record."""

    @abstractmethod
    def is_over(self, bars: Bars) -> bool:
        """Return whether the run ended. Raises ShoalError if it cannot continue."""

    @abstractmethod
    def stop(self, bars: Bars) -> None:
        """Request a stop with a checkpoint. Repeated calls are harmless."""

    def detaches_on(self, interrupt: KeyboardInterrupt) -> bool:  # noqa: ARG002
        """Return whether this interrupt ends only the command, while the run continues."""
        return False

    def detached_fields(self) -> Mapping[str, Any]:
        """Return the fields that the command reports when it detaches from the run."""
        return {}

    def spent(self) -> float | None:
        """Return the dollars so far; None if unknown, or if the run is free."""
        return None

    @abstractmethod
    def collect(self, bars: Bars, *, stopped: bool) -> RunResult:
        """Copy the results to the output. Raises ShoalError if the summary is invalid."""


class Place(DataAccess):
    """Place where runs happen."""

    name: str
    pause: float
    """Seconds between two checks of a run."""
    options: Mapping[str, Sequence[str]]
    """Options, with their words, that select the place on a command line."""
    shares: bool = False
    """True if its nodes have a share."""

    def finished_before(self, config: TrainConfig) -> dict[str, Any] | None:
        """Return the summary of the finished run that the user resumes, with `finished_before` true; otherwise None.

        Places that choose the run to resume by themselves return None. Raises TrainingError if the run would
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
    def prepare(self, source: Source, config: TrainConfig, bars: Bars) -> Run:
        """Prepare a run, up to the first step that costs money.

        Raises what `Source.prepare` raises, and ShoalError if another run occupies the place.
        """

    def nodes(self, *, readers: bool = False) -> list[Node]:  # noqa: ARG002
        """Return the nodes that a run would start, with `readers` also the readers."""
        return []

    def hourly(self, nodes: Sequence[Node]) -> float | None:  # noqa: ARG002
        """Return the on-demand dollars an hour of these nodes; None if a price is unknown."""
        return None

    def credentials_warning(self, seconds: float) -> str | None:  # noqa: ARG002
        """Return a warning if the command's credentials expire within `seconds`, else None."""
        return None
