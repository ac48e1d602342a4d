"""What the nodes of a training have cost so far: hours times on-demand prices, as the guard counts.

A node is paid for from its launch on, and counts from there. A node that ran before the training, as with `start:
deploy`, counts from the training's start.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from bootstrap.nodes.fleet import GpuNode
from infra import catalog, cost


class Spending:
    """Counts the dollars of nodes that run, and of those that have ended until they were seen last."""

    def __init__(self, *, region: str, since: datetime) -> None:
        self._since = since
        self._seen: dict[str, tuple[GpuNode, datetime | None]] = {}
        """Nodes, and when each was seen last; None of one that runs."""
        self._at: datetime | None = None
        self._prices = catalog.prices(region)

    def see(self, running: Iterable[GpuNode]) -> None:
        """Note which nodes run now."""
        known, now = {each.instance_id: each for each in running}, datetime.now(UTC)
        for name, (node, ended) in self._seen.items():
            self._seen[name] = node, None if name in known else ended or self._at
        self._seen |= {name: (node, None) for name, node in known.items() if name not in self._seen}
        self._at = now

    def so_far(self) -> float | None:
        """Dollars so far, as an upper bound: spot nodes count at on-demand prices. None where a price is not known."""
        now, dollars = datetime.now(UTC), 0.0
        for node, ended in self._seen.values():
            if (rate := self._rate(node)) is None:
                return None
            dollars += rate * (max(timedelta(), (ended or now) - max(node.launched, self._since)) / timedelta(hours=1))
        return dollars if self._seen else None

    def hourly(self) -> float | None:
        """Dollars an hour of the nodes that run; None where a price is not known."""
        rates = [self._rate(node) for node, ended in self._seen.values() if ended is None]
        return None if None in rates else sum(filter(None, rates))

    def _rate(self, node: GpuNode) -> float | None:
        return cost.known(cost.training_node, node.instance_type, self._prices)


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
        now, spent = datetime.now(UTC), self._spent_now()
        dollars = None if spent is None or self.spent is None else spent - self.spent
        self.found.append({"name": name, "seconds": (now - self._since).total_seconds(), "dollars": dollars})
        self._since, self.spent = now, spent

    @property
    def seconds(self) -> float:
        return (self._since - self.began).total_seconds()
