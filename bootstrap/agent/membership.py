"""Which nodes make the next attempt at a run, and when the run has ended, as each node decides by what all tell.

Whoever comes to a decision writes it where nobody else has, so several may come to one. Nodes are heard by their beats.
One that is not heard for GONE_SECONDS is taken for gone. It may live, and not reach the bucket: its own agent then
stops its ranks when it finds the newer attempt.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bootstrap.agent.documents import RunRequest
from bootstrap.agent.node_documents import LEAVES_NOW, Attempt, Member, NodeStatus, RunEnd

GONE_SECONDS = 20.0
"""How long a node may not be heard."""
SUSPECT_SECONDS = 10.0
"""The same while ranks of another node wait for those that they lost. Nodes beat every five seconds."""
JOIN_SECONDS = 600.0
"""How long all nodes are waited for before fewer begin, and how long too few wait for others."""
SETTLED_SECONDS = 60.0
"""How long an attempt goes on before it is ended for nodes that have come."""
FRUITLESS = 3
"""How many attempts may be ended at the same step by lost nodes."""
_WHY = {"now": "being reclaimed by AWS", "off": "being shut down"}
"""What is said of nodes that leave."""
_NAMED = 8
"""How many nodes a sentence names."""
_PORTS = range(20_000, 30_000)


@dataclass(frozen=True, kw_only=True)
class Heard:
    """What a node knows of all nodes, itself included."""

    statuses: Mapping[str, NodeStatus]
    """What each has told last of this launch, by instance."""
    unheard: Mapping[str, float]
    """For how many seconds each has not been heard; infinite where it never was."""
    waited: float
    """Seconds since this node has known the launch, or the latest attempt."""
    failed: float = 0.0
    """Seconds since all nodes of the latest attempt have ended, of which one has failed."""
    step: int = 0
    """That of the newest checkpoint."""
    finished: bool = False
    """Whether the run has left a finished model."""

    def hears(self, instance: str) -> bool:
        """Whether a node is not gone."""
        return self.unheard.get(instance, float("inf")) < GONE_SECONDS


@dataclass(frozen=True)
class _Choice:
    """The nodes that would take part: trainers and then readers."""

    request: RunRequest
    members: Sequence[Member] = field(default_factory=list)

    @property
    def trainers(self) -> int:
        return sum(each.gpus > 0 for each in self.members)

    @property
    def is_whole(self) -> bool:
        return len(self.members) == self.request.trainers + self.request.readers


def decide(request: RunRequest, latest: Attempt | None, heard: Heard, *, number: int) -> Attempt | RunEnd | None:
    """The next attempt, with this number, or the end of the run, where one of them is due.

    `latest` is the latest attempt at this launch.
    """
    if latest is None:
        return _first(request, heard, number)
    gone = [each for each in latest.instances if not _is_there(each, latest, heard)]
    leaving = _leaving(LEAVES_NOW, latest, heard)
    goes_on = not (request.stop or heard.finished or _any_fails(latest, heard))
    if leaving and goes_on:  # all others stop for it with a checkpoint
        here = [each for each in latest.members if each.instance not in gone]
        ended = _all(here, lambda each: each.over, latest, heard)
        return _without([*leaving, *gone], request, latest, heard, number, why=_left(leaving, heard)) if ended else None
    if _all(latest.trainers, lambda each: each.over, latest, heard):
        told = {name: each for name, each in heard.statuses.items() if name in latest.instances}
        failed = [each for each in told.values() if each.fails]
        lost = [name for name, each in told.items() if each.lost]
        unfinished = not failed and not heard.finished
        if not unfinished and (not failed or any(each.error for each in failed) or not (gone or lost)):
            return _end(request, latest, heard)
        if not gone:  # ranks fail with those of a node that is lost
            why = f"{_named(lost, 'was', 'were')} started anew" if lost else "somebody else has stopped the ranks"
            why = _left(leaving, heard) if leaving else why
            return _without(leaving, request, latest, heard, number, why=why)
    if gone:
        return _without(gone, request, latest, heard, number)
    trains = _all(latest.members, lambda each: each.phase == "run", latest, heard)
    if request.stop or not trains or heard.waited < SETTLED_SECONDS:
        return None
    risky = _leaving(("soon",), latest, heard)
    replaced = _chosen(request, [each for each in latest.members if each.instance not in risky], heard)
    if risky and len(replaced.members) == len(latest.members):
        return _attempt(replaced, number, f"{_named(risky, 'is', 'are')} likely to be reclaimed by AWS, and replaced")
    choice = _chosen(request, latest.members, heard)
    if len(choice.members) == len(latest.members):
        return None
    new = [each.instance for each in choice.members if each.instance not in latest.instances]
    return _attempt(choice, number, f"{_named(new, 'has', 'have')} come")


def _first(request: RunRequest, heard: Heard, number: int) -> Attempt | RunEnd | None:
    if request.stop:
        return RunEnd(token=request.token, outcome="stopped")
    choice = _chosen(request, (), heard)
    if choice.is_whole or (heard.waited >= JOIN_SECONDS and choice.trainers >= request.min_nodes):
        return _attempt(choice, number, "")
    return _too_few(choice, "not all nodes came") if heard.waited >= JOIN_SECONDS else None


def _without(
    gone: Sequence[str], request: RunRequest, latest: Attempt, heard: Heard, number: int, *, why: str = ""
) -> Attempt | RunEnd | None:
    """An attempt of the nodes that are left, and of those that have come; `why`: by default that the others are
    gone."""
    if request.stop:
        return RunEnd(token=request.token, outcome="stopped")
    choice = _chosen(request, [each for each in latest.members if each.instance not in gone], heard)
    why = why or f"{_named(gone, 'is', 'are')} gone"
    if choice.trainers < request.min_nodes:
        silent = min((heard.unheard.get(each, 0.0) for each in gone), default=0.0)
        return _too_few(choice, why) if silent >= JOIN_SECONDS else None
    fruitless = latest.fruitless + 1 if heard.step == latest.step else 0
    if fruitless >= FRUITLESS:
        error = f"{why}, and {FRUITLESS} attempts in turn have come no further than step {heard.step}"
        return RunEnd(token=request.token, outcome="failed", error=error)
    return _attempt(choice, number, why, step=heard.step, fruitless=fruitless)


def _end(request: RunRequest, latest: Attempt, heard: Heard) -> RunEnd | None:
    """How the run has ended, now that all ranks have."""
    readers = [each for each in latest.members if not each.gpus and heard.hears(each.instance)]
    if not _all(readers, lambda each: each.over, latest, heard):
        return None
    told = [each for each in map(heard.statuses.get, latest.instances) if each is not None]
    failed = [each for each in told if each.fails]
    if not failed:
        return RunEnd(token=request.token, outcome="stopped" if request.stop else "finished")
    error = next((each.error for each in failed if each.error), "")
    if not error and heard.failed < 2 * GONE_SECONDS:
        return None  # ranks fail with a node that is lost, which is known only later
    return RunEnd(token=request.token, outcome="failed", error=error)


def _is_there(instance: str, latest: Attempt, heard: Heard) -> bool:
    """Whether a member is heard, and can go on. Ranks that lost others make one that is silent suspect sooner."""
    silent = heard.unheard.get(instance, float("inf"))
    if silent >= SUSPECT_SECONDS:
        told = ((name, heard.statuses.get(name)) for name in latest.instances if name != instance and heard.hears(name))
        lost = any(
            each and each.attempt == latest.number and (each.waits or each.fails or each.over) for _, each in told
        )
        silent = GONE_SECONDS if lost else silent
    return silent < GONE_SECONDS and not _has_lost_all(instance, heard)


def _has_lost_all(instance: str, heard: Heard) -> bool:
    """Whether a member waits as a new node does: it was started anew, and has nothing of the attempt any more."""
    found = heard.statuses.get(instance)
    return found is not None and found.attempt == 0 and heard.waited >= GONE_SECONDS


def _all(members: Sequence[Member], holds: Callable[[NodeStatus], bool], latest: Attempt, heard: Heard) -> bool:
    """Whether something holds of what all of these nodes have told of the latest attempt."""
    found = [heard.statuses.get(each.instance) for each in members]
    return all(each is not None and each.attempt == latest.number and holds(each) for each in found)


def _chosen(request: RunRequest, first: Sequence[Member], heard: Heard) -> _Choice:
    """The nodes `first`, and after them those that wait, as many as were asked for."""
    known = {each.instance for each in first}
    here = (name for name in sorted(heard.statuses) if heard.hears(name) and name in (request.nodes or (name,)))
    waiting = (name for name in here if heard.statuses[name].phase == "wait" and not heard.statuses[name].leaves)
    joining = [member for name in waiting if name not in known and (member := heard.statuses[name].member(name))]
    every = [*first, *joining]
    trainers = [each for each in every if each.gpus][: request.trainers]
    readers = [each for each in every if not each.gpus][: request.readers]
    return _Choice(request, [*trainers, *readers])


def _leaving(when: Sequence[str], latest: Attempt, heard: Heard) -> list[str]:
    """The nodes of the latest attempt that have told that they leave then."""
    found = ((name, heard.statuses.get(name)) for name in latest.instances)
    return [name for name, each in found if each and each.attempt == latest.number and each.leaves in when]


def _left(leaving: Sequence[str], heard: Heard) -> str:
    of = {when: [name for name in leaving if heard.statuses[name].leaves == when] for when in _WHY}
    return "; ".join(f"{_named(names, 'is', 'are')} {_WHY[when]}" for when, names in of.items() if names)


def _any_fails(latest: Attempt, heard: Heard) -> bool:
    told = map(heard.statuses.get, latest.instances)
    return any(each is not None and each.attempt == latest.number and each.fails for each in told)


def _attempt(choice: _Choice, number: int, why: str, *, step: int = 0, fruitless: int = 0) -> Attempt:
    return Attempt(
        number=number,
        token=choice.request.token,
        members=tuple(choice.members),
        port=random.choice(_PORTS),  # noqa: S311
        step=step,
        fruitless=fruitless,
        why=why,
    )


def _too_few(choice: _Choice, why: str) -> RunEnd:
    return RunEnd(
        token=choice.request.token,
        outcome="failed",
        error=f"{why}, and in {JOIN_SECONDS / 60:.0f} minutes no more than {choice.trainers} of at least "
        f"{choice.request.min_nodes} could train",
    )


def _named(instances: Sequence[str], one: str, several: str) -> str:
    """Nodes in a sentence, with the verb that follows."""
    if len(instances) == 1:
        return f"the node {instances[0]} {one}"
    more = f" and {len(instances) - _NAMED} more" if len(instances) > _NAMED else ""
    return f"the nodes {', '.join(instances[:_NAMED])}{more} {several}"
