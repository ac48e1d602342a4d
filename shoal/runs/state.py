"""State of a run, as its backend reports it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bootstrap.node.node_documents import Attempt, NodeStatus
from corpus.stream.progress import Status
from shoal.runs.sources.source import Staging

Reports = Mapping[str, NodeStatus | str]
"""For each node of a deployment, by instance ID: its status, or the reason why the status is unreadable."""


class StopReason(NamedTuple):
    """Why a run stopped although its command did not request it."""

    why: str
    """The reason, which completes "the run stopped, because"."""
    hint: str = ""
    """How to continue, as the end of that sentence; empty if the reason says it."""
    without_checkpoint: str = ""
    """Message if the run had no checkpoint yet; empty: the general message."""


@dataclass(frozen=True, kw_only=True)
class RunState:
    """State of a run."""

    phase: str
    """`starting`, `running`, or the outcome. For a training job, it is SageMaker's secondary status."""
    outcome: str = ""
    """`finished`, `stopped` or `failed`; empty while the run has not ended."""
    error: str = ""
    """Reason of a failure; empty if the run has not failed, or if only its logs contain the reason."""
    logs: Sequence[str] = ()
    """Names of the logs that contain the reason of a failure."""
    find_stop_reason: Callable[[], StopReason] | None = None
    """Function that asks why the run stopped; None if the run has not stopped."""
    is_stopping: bool = False
    """True if a stop was requested."""
    attempts: Sequence[Attempt] = ()
    """Attempts of the latest launch."""
    staging: Staging | None = None
    """Progress bar until the ranks have their data; None once they have it."""
    bytes_read: int = 0
    """Number of bytes of text that all nodes have read, before the ranks start."""
    reading: Status | None = None
    """Progress of the readers that run at the same time as the ranks; None without such readers."""
    is_independent: bool = False
    """True if the run continues when its command exits."""
    notes: Sequence[str] = ()
    """Sentences for the user. A command shows each of them once."""
    dollars: float | None = None
    """Cost so far; None if it is unknown, or if the run costs nothing."""
    machines: Mapping[str, list[dict[str, Any]]] | None = None
    """`nodes` and `readers`: the machines that cost money; None if the backend does not know what its machines cost."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Fields that the backend adds to the summary of an ended run."""

    @property
    def has_ended(self) -> bool:
        return bool(self.outcome)
