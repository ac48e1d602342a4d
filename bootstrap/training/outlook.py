"""What a run has cost so far, and what is to be expected of it: the share that is done, when it ends, and its cost.

Costs are hours times on-demand prices, as the guard counts. A node is paid for from its launch on, and counts from
there; one that ran before the training, as with `start: deploy`, counts from the training's start. All else is what the
nodes report of the run's record. What nobody can tell is None, never 0.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from bootstrap.agent.documents import RunRequest
from bootstrap.agent.node_documents import Attempt, NodeStatus
from bootstrap.nodes.fleet import GpuNode
from infra import catalog, cost

_LATE_SECONDS = 120.0
"""How long after its predicted end a run may go on before the prediction is wrong: nodes tell every 30 seconds."""


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


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What is to be expected of a run; None where nobody can tell."""

    done: float | None = None
    """The share of its steps."""
    ends: datetime | None = None
    """When its last step is expected, or it is to stop for its costs."""
    seconds_left: float | None = None
    """Until then."""
    dollars: float | None = None
    """What its nodes have cost so far; None also where some of them have ended."""
    dollars_at_least: float | None = None
    """The same of those that run."""
    dollars_in_all: float | None = None
    """Until its end, if all of its nodes go on until then."""


def outlook(
    request: RunRequest,
    attempts: Sequence[Attempt],
    told: NodeStatus | None,
    nodes: Sequence[GpuNode],
    spending: Spending,
) -> Outlook:
    """What is to be expected of a run now; `told`: what the first node of its latest attempt has told, `nodes`: those
    that run, which `spending` is to count."""
    now = datetime.now(UTC)
    step = steps = None
    if told and attempts and (told.token, told.attempt) == (attempts[-1].token, attempts[-1].number):
        step, steps = told.step, told.steps
    ends = _end(request, told if step is not None else None, now)
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


def _end(request: RunRequest, told: NodeStatus | None, now: datetime) -> datetime | None:
    """The first of the ends that are known. One that is over was predicted before the ranks began again, or hang."""
    if told is None or told.ends is None or told.ends < now.timestamp() - _LATE_SECONDS:
        return None
    return datetime.fromtimestamp(min(told.ends, request.until or told.ends), UTC)
