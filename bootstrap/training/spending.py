"""What the nodes of a training have cost so far: hours times prices on demand, as the guard counts.

The easy mistake is to count from the first step: a node is paid for from its launch on. But one that was there before,
as with `start: deploy`, would be paid for without this training too, and counts only from where that began.
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
        """Dollars until now, at most: spot nodes count as on demand; None where a price is unknown."""
        if not self._rates:
            return None
        now = datetime.now(UTC)
        return sum(rate * self._hours(node, now) for node, rate in zip(self._nodes, self._rates, strict=True))

    def _hours(self, node: GpuNode, now: datetime) -> float:
        return max(timedelta(), now - max(node.launched, self._since)) / timedelta(hours=1)
