"""A training on a deployment that some command has begun, as all other commands see it, wherever it runs."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bootstrap.agent.node_documents import Attempt, NodeStatus
from bootstrap.aws.deployment import Deployment
from bootstrap.progress import Bars
from bootstrap.training.outlook import Outlook
from bootstrap.training.places.carrying_out import carry_out
from bootstrap.training.places.launch import LaunchOptions
from bootstrap.training.places.place import Place, Run
from trainer.command_line import from_words
from trainer.config import TrainConfig

PAUSE_SECONDS = 1.0
"""Between two looks whether it has stopped."""
Reports = Mapping[str, NodeStatus | str]
"""What each node of a deployment reports, or why that cannot be read."""


@dataclass(frozen=True, kw_only=True)
class WantedRun:
    run: str
    state: str
    """`starting` before its nodes have booted, `running`, or how it has ended; of a training job what SageMaker calls
    it."""
    error: str
    attempts: list[Attempt]
    """The attempts at its latest launch."""
    outlook: Outlook | None
    """None of a run that has ended."""


class BegunTraining(ABC):
    continued = "the command that began it, with --resume"
    """What continues it after a stop."""
    is_endless = False
    """Whether it learns from an unbounded stream."""
    is_stopping: bool
    """Whether it was asked to stop."""

    def __init__(self, deployment: Deployment, name: str) -> None:
        self.deployment, self.name = deployment, name
        self.results = f"shoal fetch {deployment.name} --run {name} --output results"
        """The command that copies its results."""

    @property
    @abstractmethod
    def options(self) -> Mapping[str, tuple[str, ...]]:
        """Those of its training, each with the words of its values. Raises ShoalError where they are not Shoal's."""

    @property
    @abstractmethod
    def has_ended(self) -> bool:
        """Whether nothing of it runs or waits."""

    @abstractmethod
    def status(self, reports: Reports) -> WantedRun:
        """Its state, its attempts, and what is to be expected of it."""

    @abstractmethod
    def stop(self, bars: Bars) -> tuple[str, str]:
        """Stop it with a checkpoint; returns how it ended, and why it failed. Raises ShoalError where it does not
        stop."""

    def follow(self, output: Path, bars: Bars) -> dict[str, Any]:
        """Follow it to its results in `output`; returns what `train` does.

        An interrupt ends this command alone. Raises TrainingError where it would replace a finished model, and
        ShoalError where its options are not Shoal's.
        """
        config = from_words(self.options, endless=self.is_endless, data=Path("dataset"), output=output, cache=output)
        place, run = self._run(config, LaunchOptions(leave=True))
        place.finished_before(replace(config, resume=False, force=False))
        return carry_out(place, run, bars)

    @abstractmethod
    def _run(self, config: TrainConfig, wishes: LaunchOptions) -> tuple[Place, Run]: ...
