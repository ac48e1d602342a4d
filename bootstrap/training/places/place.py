"""Where a run happens, and a run there: from a source that is prepared to the results.

The commands know places by these two classes alone, so a place is added by a file beside this one.
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
class Ended:
    """What a run has left, in its output."""

    summary: dict[str, Any] | None
    """The content of summary.json; None where it left none."""
    failure: Exception | None
    """Why it came to no end, unless it was asked to stop."""
    told: Mapping[str, Any] = field(default_factory=dict)
    """What its summary says besides."""
    launch: Mapping[str, Any] = field(default_factory=dict)
    """What launch.json says besides."""


class Run(ABC):
    """A run at a place, whose source is prepared."""

    config: TrainConfig
    prepared: Prepared
    survives = False
    """Whether it can go on without its command."""

    def resources(self, bars: Bars) -> AbstractContextManager[object]:  # noqa: ARG002
        """What it runs on, and what that costs money, until the end of the block."""
        return nullcontext()

    @abstractmethod
    def started(self, bars: Bars) -> AbstractContextManager[object]:
        """Start it; at the end of the block nothing of it runs. Raises Detached where it is left to itself."""

    def wait_for_data(self, bars: Bars) -> None:  # noqa: B027
        """Wait until its ranks have what they learn from. An error or an interrupt stops it."""

    @abstractmethod
    def record(self, bars: Bars) -> RecordView:
        """What shows its record."""

    @abstractmethod
    def is_over(self, bars: Bars) -> bool:
        """Whether the run has ended. Raises ShoalError where it cannot go on."""

    @abstractmethod
    def stop(self, bars: Bars) -> None:
        """Ask it, however often, to stop with a checkpoint."""

    def leaves(self, interrupt: KeyboardInterrupt) -> bool:  # noqa: ARG002
        """Whether this interrupt ends the command alone, and the run goes on."""
        return False

    def left(self) -> Mapping[str, Any]:
        """What its command tells of a run that it leaves to itself."""
        return {}

    def spent(self) -> float | None:
        """The dollars so far; None where they are not known, or there are none."""
        return None

    @abstractmethod
    def collect(self, bars: Bars, *, stopped: bool) -> Ended:
        """Bring its results to its output. Raises ShoalError for a summary that is none."""


class Place(DataAccess):
    """Where runs happen."""

    name: str
    pause: float
    """Seconds between two looks at a run."""
    options: Mapping[str, Sequence[str]]
    """The words of the options that name it on a command line."""
    shares: bool = False
    """Whether its nodes share a folder."""

    def finished_before(self, config: TrainConfig) -> dict[str, Any] | None:
        """The summary of the finished run that is asked to go on, with `finished_before` true; None for any other run,
        as where nodes find the one that goes on. Raises TrainingError where files of the run would replace a finished
        model."""
        if not config.resume:
            require_free_output(config.output, force=config.force)
        elif has_model(config.output) and not was_stopped(config.output):
            raise TrainingError(
                f"{config.output / MODEL} is a finished model, which the resumed run would replace; choose another "
                "--output"
            )
        return None

    @abstractmethod
    def prepare(self, source: Source, config: TrainConfig, bars: Bars) -> Run:
        """A run, as far as it costs nothing. Raises what `Source.prepare` raises, and ShoalError where the place is
        taken."""

    def nodes(self, *, readers: bool = False) -> list[Node]:  # noqa: ARG002
        """The nodes that a run would start: those that train, and with `readers` those that read."""
        return []

    def hourly(self, nodes: Sequence[Node]) -> float | None:  # noqa: ARG002
        """Dollars an hour of these nodes on demand; None where a price is not known."""
        return None

    def credentials_warning(self, seconds: float) -> str | None:  # noqa: ARG002
        """What to tell where the command's credentials end before a run of so many seconds; None where they hold."""
        return None
