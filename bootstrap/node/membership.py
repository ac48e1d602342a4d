"""Decision on the next attempt or the end of a run, from the statuses and heartbeats of all nodes.

Each node decides independently and writes its decision with a conditional write, so only the first decision counts. A
node without a heartbeat for GONE_SECONDS counts as gone. Such a node might still run without a connection to the
bucket. Its agent stops its ranks as soon as it reads the newer attempt.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bootstrap.node.documents import RunRequest
from bootstrap.node.node_documents import Attempt, Member, NodeStatus, RunEnd

GONE_SECONDS = 20.0
"""Seconds without a heartbeat after which a node counts as gone."""
SUSPECT_SECONDS = 10.0
"""Shorter limit than GONE_SECONDS, used while ranks of other nodes wait for lost ranks. Nodes send a heartbeat every
five seconds."""
JOIN_SECONDS = 600.0
"""Seconds to wait for nodes. After this time, the run starts with fewer nodes, or fails if fewer than `min_nodes` can
train."""
SETTLED_SECONDS = 60.0
"""Seconds for which an attempt lasts before new nodes can join. When they join, the attempt ends."""
FRUITLESS = 3
"""The run fails after this number of consecutive attempts that made no progress because nodes were lost."""
_LEAVING = {"now": "being reclaimed by AWS", "off": "being shut down"}
"""Phrases for nodes that are about to terminate."""
_MAX_NAMED = 8
"""Maximum number of nodes that a sentence names."""
_PORTS = range(20_000, 30_000)


@dataclass(frozen=True, kw_only=True)
class ClusterView:
    """State of all nodes, including the node that observes it."""

    statuses: Mapping[str, NodeStatus]
    """Latest status of each node in this launch, by instance id."""
    seconds_since_heartbeat: Mapping[str, float]
    """Seconds since the last heartbeat of each node; infinite for a node that never sent one."""
    waited: float
    """Seconds since this node first read the latest attempt, or the launch if there is no attempt yet."""
    failed: float = 0.0
    """Seconds since a node of the latest attempt first reported a failure; 0 without a failure."""
    newest_step: Callable[[], int]
    """Function that reads the step of the newest checkpoint."""
    has_finished: Callable[[], bool]
    """Function that reads whether the run has written a finished model."""

    def is_alive(self, instance: str) -> bool:
        """Return whether the node's last heartbeat is less than GONE_SECONDS old."""
        return self.seconds_since_heartbeat.get(instance, float("inf")) < GONE_SECONDS


def decide(request: RunRequest, latest: Attempt | None, view: ClusterView, *, number: int) -> Attempt | RunEnd | None:
    """Return the next attempt or the end of the run, or None if neither is due.

    `latest` is the latest attempt of this launch, and `number` is the number of the next attempt.
    """
    if latest is None:
        return _first(request, view, number)
    decision = _next(request, latest, view, number)
    if isinstance(decision, Attempt) and view.has_finished():  # the lost nodes are not needed any more
        return RunEnd(token=request.token, outcome="finished")
    return decision


def _next(request: RunRequest, latest: Attempt, view: ClusterView, number: int) -> Attempt | RunEnd | None:
    gone = [each for each in latest.instances if not _can_continue(each, latest, view)]
    reported = statuses_of(latest, view.statuses)
    leaving = [name for name, each in reported.items() if each.leaves]
    finished = any(each.over for each in reported.values()) and view.has_finished()
    failed = [each for each in reported.values() if each.fails]
    if leaving and not (request.stop or finished or failed):  # first, all other nodes stop with a checkpoint
        staying = [each for each in latest.members if each.instance not in gone]
        if not _all(staying, lambda each: each.over, latest, view):
            return None
        return _without([*leaving, *gone], request, latest, view, number, why=_why_leaving(leaving, view))
    if _all(latest.trainers, lambda each: each.over, latest, view):
        lost = [name for name, each in reported.items() if each.lost]
        unfinished = not failed and not finished
        if not unfinished and (not failed or any(each.error for each in failed) or not (gone or lost)):
            return _end(request, latest, view)
        if not gone:  # the loss of a different node can also make ranks fail
            why = f"{_nodes_and_verb(lost, 'was', 'were')} restarted" if lost else "another process stopped the ranks"
            why = _why_leaving(leaving, view) if leaving else why
            return _without(leaving, request, latest, view, number, why=why)
    if gone:
        return _without(gone, request, latest, view, number)
    trains = _all(latest.members, lambda each: each.phase == "run", latest, view)
    if request.stop or not trains or view.waited < SETTLED_SECONDS:
        return None
    members = _select(request, latest.members, view)
    new = [each.instance for each in members if each.instance not in latest.instances]
    return _attempt(request, members, number, f"{_nodes_and_verb(new, 'has', 'have')} joined") if new else None


def statuses_of(attempt: Attempt, statuses: Mapping[str, NodeStatus]) -> Mapping[str, NodeStatus]:
    """Return the statuses that members of an attempt reported for this attempt, by instance id."""
    known = ((name, statuses.get(name)) for name in attempt.instances)
    return {name: each for name, each in known if each is not None and each.attempt == attempt.number}


def _first(request: RunRequest, view: ClusterView, number: int) -> Attempt | RunEnd | None:
    if request.stop:
        return RunEnd(token=request.token, outcome="stopped")
    members, late = _select(request, (), view), view.waited >= JOIN_SECONDS
    is_complete = len(members) == request.trainers + request.readers
    if is_complete or (late and _trainers(members) >= request.min_nodes):
        return _attempt(request, members, number, "")
    return _too_few(request, members, "not all nodes joined") if late else None


def _without(
    gone: Sequence[str], request: RunRequest, latest: Attempt, view: ClusterView, number: int, *, why: str = ""
) -> Attempt | RunEnd | None:
    """Return an attempt without the nodes `gone`, but with nodes that wait to join. Return the end of the run if the
    run cannot continue, or None to wait for more nodes.

    `why` defaults to a sentence about the loss of `gone`.
    """
    if request.stop:
        return RunEnd(token=request.token, outcome="stopped")
    members = _select(request, [each for each in latest.members if each.instance not in gone], view)
    why = why or f"{_nodes_and_verb(gone, 'is', 'are')} gone"
    if _trainers(members) < request.min_nodes:
        silent = min((view.seconds_since_heartbeat.get(each, 0.0) for each in gone), default=0.0)
        return _too_few(request, members, why) if silent >= JOIN_SECONDS else None
    step = view.newest_step()
    fruitless = latest.fruitless + 1 if step == latest.step else 0
    if fruitless >= FRUITLESS:
        error = f"{why}, and {FRUITLESS} consecutive attempts made no progress after step {step}"
        return RunEnd(token=request.token, outcome="failed", error=error)
    return _attempt(request, members, number, why, step=step, fruitless=fruitless)


def _end(request: RunRequest, latest: Attempt, view: ClusterView) -> RunEnd | None:
    """Return the end of the run if all its ranks have exited. Return None while readers still run or the cause of a
    failure is unclear."""
    readers = [each for each in latest.members if not each.gpus and view.is_alive(each.instance)]
    if not _all(readers, lambda each: each.over, latest, view):
        return None
    failed = [each for each in statuses_of(latest, view.statuses).values() if each.fails]
    if not failed:
        return RunEnd(token=request.token, outcome="stopped" if request.stop else "finished")
    error = next((each.error for each in failed if each.error), "")
    if not error and view.failed < 2 * GONE_SECONDS:
        return None  # a lost node can make ranks fail before its loss is detected
    return RunEnd(token=request.token, outcome="failed", error=error)


def _can_continue(instance: str, latest: Attempt, view: ClusterView) -> bool:
    """Return whether a member sends heartbeats and can continue.

    The time limit for heartbeats is shorter while ranks of other nodes wait for lost ranks.
    """
    silent = view.seconds_since_heartbeat.get(instance, float("inf"))
    if silent >= SUSPECT_SECONDS:
        reported = statuses_of(latest, view.statuses)
        others = [each for name, each in reported.items() if name != instance and view.is_alive(name)]
        silent = GONE_SECONDS if any(each.waits or each.fails or each.over for each in others) else silent
    status = view.statuses.get(instance)
    # A member that waits for an attempt was replaced, and its files are lost.
    is_replaced = status is not None and status.attempt == 0 and view.waited >= GONE_SECONDS
    return silent < GONE_SECONDS and not is_replaced


def _all(members: Sequence[Member], holds: Callable[[NodeStatus], bool], latest: Attempt, view: ClusterView) -> bool:
    """Return whether all `members` have reported a status for the latest attempt, and `holds` is true for each
    status."""
    reported = statuses_of(latest, view.statuses)
    return all(each.instance in reported and holds(reported[each.instance]) for each in members)


def _trainers(members: Sequence[Member]) -> int:
    return sum(each.gpus > 0 for each in members)


def _select(request: RunRequest, first: Sequence[Member], view: ClusterView) -> list[Member]:
    """Return the nodes `first`, followed by waiting nodes, limited to the numbers of trainers and readers in the
    request."""
    known = {each.instance for each in first}
    staying = (name for name in sorted(view.statuses) if view.is_alive(name) and name in (request.nodes or (name,)))
    waiting = (name for name in staying if view.statuses[name].phase == "wait" and not view.statuses[name].leaves)
    joining = [member for name in waiting if name not in known and (member := view.statuses[name].member(name))]
    every = [*first, *joining]
    trainers = [each for each in every if each.gpus][: request.trainers]
    readers = [each for each in every if not each.gpus][: request.readers]
    return [*trainers, *readers]


def _why_leaving(leaving: Sequence[str], view: ClusterView) -> str:
    by_reason = {when: [name for name in leaving if view.statuses[name].leaves == when] for when in _LEAVING}
    return "; ".join(
        f"{_nodes_and_verb(names, 'is', 'are')} {_LEAVING[when]}" for when, names in by_reason.items() if names
    )


def _attempt(
    request: RunRequest, members: Sequence[Member], number: int, why: str, *, step: int = 0, fruitless: int = 0
) -> Attempt:
    return Attempt(
        number=number,
        token=request.token,
        members=tuple(members),
        port=random.choice(_PORTS),  # noqa: S311
        step=step,
        fruitless=fruitless,
        why=why,
    )


def _too_few(request: RunRequest, members: Sequence[Member], why: str) -> RunEnd:
    return RunEnd(
        token=request.token,
        outcome="failed",
        error=f"{why}: the run needs at least {request.min_nodes} nodes, but after {JOIN_SECONDS / 60:.0f} "
        f"minutes only {_trainers(members)} could train",
    )


def _nodes_and_verb(instances: Sequence[str], one: str, several: str) -> str:
    """Return the beginning of a sentence: the instance ids of nodes and the verb, `one` for a single node or `several`
    for more nodes."""
    if len(instances) == 1:
        return f"the node {instances[0]} {one}"
    more = f" and {len(instances) - _MAX_NAMED} more" if len(instances) > _MAX_NAMED else ""
    return f"the nodes {', '.join(instances[:_MAX_NAMED])}{more} {several}"
