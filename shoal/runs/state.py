"""State of a run, as commands show it."""

from collections.abc import Mapping
from dataclasses import dataclass

from bootstrap.node.node_documents import Attempt, NodeStatus
from shoal.runs.outlook import Outlook

Reports = Mapping[str, NodeStatus | str]
"""For each node of a deployment, by instance ID: its status, or the reason why the status is unreadable."""


@dataclass(frozen=True, kw_only=True)
class RunOverview:
    """State of a run for `shoal status`."""

    run: str
    state: str
    """State on nodes: `starting`, `running`, or the outcome; of a training job: SageMaker's secondary status."""
    error: str
    attempts: list[Attempt]
    """Attempts of the latest launch."""
    outlook: Outlook | None
    """Prediction for the run; None after the run has ended."""
    advice: str = ""
    """Advice if nodes still run after the run has ended."""
