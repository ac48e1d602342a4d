"""Options of a run, as the user gave them."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class LaunchOptions:
    """Options of a launch, as the user gave them on the command line."""

    keep: bool = False
    """True if the nodes continue to run after the training."""
    min_nodes: int = 1
    """Minimum number of nodes with which training continues after other nodes were lost."""
    max_dollars: float | None = None
    """Maximum cost of the nodes in dollars; None: no limit."""
    managed: bool = False
    """True if a SageMaker job is to train, even if the deployment has nodes."""
    detach: bool = False
    """True if the command is to exit as soon as the nodes have agreed on the first attempt."""


DEFAULT = LaunchOptions()
