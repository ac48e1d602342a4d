"""Interface of the backends, which execute runs: this machine, hosts, a deployment's nodes, and SageMaker.

Commands use backends only through this class. A run belongs to no command: after `start`, any command can read its
state, stop it and copy its files, by the run's name.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from infra.gpu_nodes import PlannedNode
from shoal.runs.files import RunFiles
from shoal.runs.run import NO_LIMITS, Limits, Run
from shoal.runs.sources.source import DataAccess, DataSource
from shoal.runs.state import RunState
from trainer.config import TrainConfig


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """Nodes that a run would start."""

    nodes: Sequence[PlannedNode]
    hourly: float | None
    """Cost of the nodes in dollars per hour, at on-demand prices; None if a price is unknown."""
    shares_files: bool = False
    """True if the nodes have a shared file system."""


class Backend(ABC):
    """Backend, which executes runs."""

    name: str
    options: Mapping[str, Sequence[str]]
    """Options that select the backend on a command line: the words of each option's value, by name."""
    data: DataAccess
    """Ways in which the ranks access data."""
    pause: float = 1.0
    """Seconds between two readings of a run's state."""
    longest_stop: float = math.inf
    """Maximum number of seconds from a request to stop until a run has ended."""
    outlives_command = True
    """True if a run can continue when its command exits."""
    when_abandoned: Sequence[str] = ()
    """Sentences for a user who leaves a run while AWS does not answer, because the run then still costs money."""

    def prepare(self, source: DataSource, config: TrainConfig, limits: Limits = NO_LIMITS) -> Run:
        """Prepare a run as far as possible without a step that costs money.

        Raises DataError if the source is invalid, and ShoalError if the backend refuses the run.
        """
        self.data.check_options(config.values())
        return Run.of_config(config, source.prepare(self.data, config), limits)

    @abstractmethod
    def start(self, run: Run) -> Run:
        """Start a prepared run. If an equal command has started such a run, return that run instead.

        After an error or an interrupt, `stop` must be called with `at_once`.
        """

    @abstractmethod
    def state(self, name: str) -> RunState:
        """Return the state of a run. Raises ShoalError if the run has not ended but cannot continue."""

    @abstractmethod
    def stop(self, name: str, *, at_once: bool = False) -> None:
        """Request that a run stops with a checkpoint. If the run has ended, end what still costs money.

        With `at_once`, end the run that this command started, without a checkpoint, even if `start` failed. Repeated
        calls are harmless.
        """

    @abstractmethod
    def files(self, name: str) -> RunFiles:
        """Return the files of a run."""

    def hardware(self, run: Run) -> Hardware | None:  # noqa: ARG002
        """Return the nodes that a run would start; None if a run starts no nodes."""
        return None

    def requested_run(self, name: str, output: Path) -> Run:
        """Return what the user wanted of a run that an earlier command started, with a folder for its results.

        Raises ShoalError if the run's options are unknown.
        """
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:  # noqa: B027
        """Close the connections of this command, and end its processes."""
