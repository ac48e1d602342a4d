"""What is to be expected of a run that goes on: the share that is done, when it ends, and what it costs.

All of it is what the nodes tell of the run's record, and what AWS says of them. What nobody can tell is None, never 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bootstrap.agent.documents import RunRequest
from bootstrap.agent.node_documents import Attempt, NodeStatus
from bootstrap.nodes.fleet import GpuNode
from bootstrap.training.spending import Spending

_LATE_SECONDS = 120.0
"""How long after its predicted end a run may go on before the prediction is wrong: nodes tell every 30 seconds."""


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
    request: RunRequest, attempts: Sequence[Attempt], told: NodeStatus | None, nodes: Sequence[GpuNode], cost: Spending
) -> Outlook:
    """What is to be expected of a run now; `told`: what the first node of its latest attempt has told, `nodes`: those
    that run, which `cost` is to count."""
    now = datetime.now(UTC)
    step = steps = None
    if told and attempts and (told.token, told.attempt) == (attempts[-1].token, attempts[-1].number):
        step, steps = told.step, told.steps
    ends = _end(request, told if step is not None else None, now)
    left = None if ends is None else max(0.0, (ends - now).total_seconds())
    cost.see(nodes)
    least, hourly = cost.so_far(), cost.hourly()
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
