"""What the nodes of a training have cost so far: hours times on-demand prices, as the guard counts.

A node is paid for from its launch on, and counts from there. A node that ran before the training, as with `start:
deploy`, counts from the training's start.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bootstrap.nodes.fleet import GpuNode
from infra import catalog, cost
from infra.topology_error import TopologyError


class Spending:
    """Counts the dollars of nodes that run."""

    def __init__(self, nodes: Sequence[GpuNode], *, region: str, since: datetime) -> None:
        self._nodes, self._since = nodes, since
        try:
            prices = catalog.prices(region)
            self._rates = [cost.training_node(node.instance_type, prices) for node in nodes]
        except TopologyError:
            self._rates = []

    def so_far(self) -> float | None:
        """Dollars so far, as an upper bound: spot nodes count at on-demand prices. None where a price is not known."""
        if not self._rates:
            return None
        now = datetime.now(UTC)
        return sum(rate * self._hours(node, now) for node, rate in zip(self._nodes, self._rates, strict=True))

    def _hours(self, node: GpuNode, now: datetime) -> float:
        return max(timedelta(), now - max(node.launched, self._since)) / timedelta(hours=1)


class Stages:
    """The parts of a launch, one after the other: how long each took, and what it cost."""

    def __init__(self, began: datetime, spent: Callable[[], float | None]) -> None:
        """`spent` returns the dollars so far; None where a price is not known."""
        self.found: list[dict[str, Any]] = []
        """`name`, `seconds` and `dollars` (None where a price is not known) of each."""
        self.began = self._since = began
        self.spent: float | None = 0.0
        """The dollars until the end of the last of them."""
        self._spent_now = spent

    def end(self, name: str) -> None:
        """End a stage."""
        now, spent = datetime.now(UTC), self._spent_now()
        dollars = None if spent is None or self.spent is None else spent - self.spent
        self.found.append({"name": name, "seconds": (now - self._since).total_seconds(), "dollars": dollars})
        self._since, self.spent = now, spent

    @property
    def seconds(self) -> float:
        """Seconds of all stages."""
        return (self._since - self.began).total_seconds()
