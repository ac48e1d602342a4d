"""Predicts the end and total cost of a run, and computes its cost so far.

A cost is hours times on-demand prices, as the guard computes it. A node costs money from its launch on. A node that was
launched before the run, as with `start: deploy`, counts from the start of the run. The nodes read the progress from the
run's record and report it. Unknown values are `None`, never 0.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from bootstrap.node.documents import RunRequest
from bootstrap.node.node_documents import Attempt, NodeStatus
from infra import catalog, cost
from shoal.aws.fleet import GpuNode
from shoal.runs.state import RunState

_LATE_SECONDS = 120.0
"""Seconds after the predicted end at which a prediction is discarded. Nodes report every 30 seconds."""


class Spending:
    """Computes the cost of nodes in dollars. A terminated node counts until the last check in which it was running."""

    def __init__(self, *, region: str, since: datetime) -> None:
        self._since = since
        self._seen: dict[str, tuple[GpuNode, datetime | None]] = {}
        """For each instance ID, the node and the time when it was last seen running, or None while it is running."""
        self._at: datetime | None = None
        self._prices = catalog.prices(region)

    def see(self, running: Iterable[GpuNode]) -> None:
        """Record the nodes that run now."""
        known, now = {each.instance_id: each for each in running}, datetime.now(UTC)
        for name, (node, ended) in self._seen.items():
            self._seen[name] = node, None if name in known else ended or self._at
        self._seen |= {name: (node, None) for name, node in known.items() if name not in self._seen}
        self._at = now

    def so_far(self) -> float | None:
        """Return the cost so far in dollars, or None if a price is unknown. Spot nodes count at on-demand prices."""
        now, dollars = datetime.now(UTC), 0.0
        for node, ended in self._seen.values():
            if (rate := self._rate(node)) is None:
                return None
            dollars += rate * (max(timedelta(), (ended or now) - max(node.launched, self._since)) / timedelta(hours=1))
        return dollars if self._seen else None

    def hourly(self) -> float | None:
        """Return the cost of the running nodes in dollars per hour, or None if a price is unknown."""
        rates = [self._rate(node) for node, ended in self._seen.values() if ended is None]
        return None if None in rates else sum(filter(None, rates))

    def _rate(self, node: GpuNode) -> float | None:
        return cost.known(cost.training_node, node.instance_type, self._prices)


_STAGES = ("start the nodes", "copy the data", "train")


class Stages:
    """Durations and costs of the consecutive stages of a launch."""

    def __init__(self, began: datetime) -> None:
        self.finished: list[dict[str, Any]] = []
        """`name`, `seconds` and `dollars` (None if a price is unknown) of each stage."""
        self.began = self._since = began
        self.spent: float | None = 0.0
        """Cost in dollars up to the end of the latest stage, or None if a price is unknown."""

    def see(self, state: RunState) -> None:
        """End the stages that are over in a state of the run: the start, the copy of the data, and the training."""
        over = (True, state.staging is None, state.has_ended)
        for name, is_over in list(zip(_STAGES, over, strict=True))[len(self.finished) :]:
            if not is_over:
                return
            self.end(name, state.dollars)

    def end(self, name: str, spent: float | None) -> None:
        """End a stage. `spent` is the cost of the launch so far in dollars, or None if a price is unknown."""
        now = datetime.now(UTC)
        dollars = None if spent is None or self.spent is None else spent - self.spent
        self.finished.append({"name": name, "seconds": (now - self._since).total_seconds(), "dollars": dollars})
        self._since, self.spent = now, spent

    @property
    def seconds(self) -> float:
        return (self._since - self.began).total_seconds()


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """Prediction for a run, with None for unknown values."""

    done: float | None = None
    """Completed share of the steps."""
    ends: datetime | None = None
    """Predicted time of the last step, or the time at which the cost limit stops the run."""
    seconds_left: float | None = None
    """Seconds until `ends`."""
    dollars: float | None = None
    """Cost in dollars of the run's nodes so far; None if one of these nodes was terminated."""
    dollars_at_least: float | None = None
    """Lower bound of the cost so far in dollars: the cost of the nodes that are still running."""
    dollars_in_all: float | None = None
    """Predicted total cost in dollars, if all nodes run until `ends`."""


def outlook(
    request: RunRequest,
    attempts: Sequence[Attempt],
    status: NodeStatus | None,
    nodes: Sequence[GpuNode],
    spending: Spending,
) -> Outlook:
    """Predict the end and cost of a run.

    Args:
        request: The request of the run.
        attempts: The attempts of the run so far.
        status: The status that the first node of the latest attempt reported.
        nodes: The running nodes.
        spending: The cost of the nodes.
    """
    now = datetime.now(UTC)
    step = steps = None
    if status and attempts and (status.token, status.attempt) == (attempts[-1].token, attempts[-1].number):
        step, steps = status.step, status.steps
    ends = _end(request, status if step is not None else None, now)
    left = None if ends is None else max(0.0, (ends - now).total_seconds())
    spending.see(nodes)
    least, hourly = spending.so_far(), spending.hourly()
    have_run = {each for attempt in attempts for each in attempt.instances}
    so_far = None if have_run - {node.instance_id for node in nodes} else least
    more = None if left is None or hourly is None else hourly * left / 3600
    return Outlook(
        done=None if step is None or not steps else min(1.0, step / steps),
        ends=ends,
        seconds_left=left,
        dollars=so_far,
        dollars_at_least=least,
        dollars_in_all=None if so_far is None or more is None else so_far + more,
    )


def _end(request: RunRequest, status: NodeStatus | None, now: datetime) -> datetime | None:
    """Return the earlier of two times: the run's predicted end, and its stop by the cost limit; None if unknown.

    A predicted end in the past is discarded, because the ranks have restarted since the prediction, or they hang.
    """
    if status is None or status.ends is None or status.ends < now.timestamp() - _LATE_SECONDS:
        return None
    return datetime.fromtimestamp(min(status.ends, request.until or status.ends), UTC)
