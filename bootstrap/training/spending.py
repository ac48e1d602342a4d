"""What the nodes of a training have cost so far: hours times on-demand prices, as the guard counts.

A node is paid for from its launch on, and counts from there. A node that ran before the training, as with `start:
deploy`, counts from the training's start.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from bootstrap.nodes.fleet import GpuNode
from infra import catalog, cost
from infra.errors import TopologyError


class Spending:
    """Counts the dollars of nodes that run."""

    def __init__(self, nodes: Sequence[GpuNode], *, region: str, since: datetime) -> None:
        self._nodes, self._since = nodes, since
        try:
            prices = catalog.prices(region)
            self._rates = [cost.gpu_node(node.instance_type, prices) for node in nodes]
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
