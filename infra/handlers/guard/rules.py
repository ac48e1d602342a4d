"""Decides what the guard does, from what it has read: nothing here calls AWS.

Nothing is deleted without a warning that is at least ten minutes old and about the very limit that is reached. A limit
that was moved since needs another warning.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

NOTICE = timedelta(minutes=30)
"""So long before the end of a deployment its owner is warned."""
SHORTEST_NOTICE = timedelta(minutes=10)
"""Nothing is deleted sooner after its warning, also when that came late."""
NEAR = 0.9
"""The part of the budget at which the owner is warned."""
BOOT = timedelta(minutes=20)
"""A GPU node without a report may be booting for so long: a little more than `shoal train` waits."""


@dataclass(frozen=True, kw_only=True)
class GuardSettings:
    """What the stack tells its guard, as JSON in the environment; prices are dollars an hour, by instance type.

    They are on-demand prices, which no spot price exceeds, with the node's volumes.
    """

    deployment: str
    stack: str
    """The stack's id, not its name: a later stack of that name has a guard of its own."""
    bucket: str
    keep: bool
    """Whether the data bucket outlives the stack."""
    nodes_prefix: str
    account: str
    """The parameter of Systems Manager in which the guard keeps its account."""
    extension: str
    """The parameter with the hours that were added to the deployment's life."""
    max_hours: float
    idle_minutes: float
    gpu: Mapping[str, float]
    emr: Mapping[str, float]
    standing: float
    """Dollars an hour of what only the end of the stack ends."""
    budget: float | None = None
    topic: str = ""
    """Whom to tell; nobody when empty."""

    @property
    def idle(self) -> timedelta:
        """How long something may do nothing."""
        return timedelta(minutes=self.idle_minutes)

    @property
    def period(self) -> timedelta:
        """The time of one mark of idleness: EMR's five minutes, or so much more that one question brings them all."""
        return timedelta(minutes=5 * (1 + self.idle_minutes // 7200))


@dataclass(frozen=True, kw_only=True)
class ObservedMachine:
    """Something that runs since a time, for so many dollars an hour."""

    price: float
    since: datetime


@dataclass(frozen=True, kw_only=True)
class ObservedNode(ObservedMachine):
    """A GPU node, with its newest sign of life: a report of its first boot, or of work."""

    sign: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class ObservedCluster:
    """An EMR cluster that has not ended."""

    identifier: str
    state: str
    quiet_since: datetime
    """When it was ready, or its newest step ended."""
    marks: Sequence[float] = ()
    """EMR's own marks: 1 where it was idle. A short step may pass between two of them."""
    machines: Sequence[ObservedMachine] = ()


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What there is of the deployment."""

    created: datetime
    extension: float = 0.0
    groups: Sequence[str] = ()
    """The auto scaling groups that ask for nodes."""
    nodes: Sequence[ObservedNode] = ()
    clusters: Sequence[ObservedCluster] = ()
    complete: bool = True
    """Whether every look succeeded."""

    @property
    def machines(self) -> list[ObservedMachine]:
        """All that is paid for by the hour, but what stands as long as the stack."""
        return [*self.nodes, *(machine for cluster in self.clusters for machine in cluster.machines)]


@dataclass(frozen=True, kw_only=True)
class SentNotice:
    """What was told, about which value of a limit, and when."""

    value: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class GuardState:
    """What the guard remembers from one round to the next."""

    spent: float = 0.0
    as_of: datetime | None = None
    rate: float = 0.0
    """Dollars an hour when it last looked."""
    told: Mapping[str, SentNotice] = field(default_factory=dict)
    """By subject: `end`, `budget`, `deletion`."""


@dataclass(frozen=True, kw_only=True)
class Action:
    """Tell the owner a text under a subject, or do something to what the subject names."""

    kind: Literal["tell", "lower", "terminate", "delete"]
    subject: str
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """What may end the deployment; `value` changes when the limit is moved, and a new warning is due."""

    name: str
    value: str
    near: bool
    reached: bool
    subject: str
    warning: str
    reason: str


def decide(
    settings: GuardSettings, now: datetime, account: GuardState | None, observed: Observation
) -> tuple[GuardState | None, list[Action]]:
    """The account after this round, and what to do, in this order.

    Without an account nothing is deleted, as nobody knows whether the owner was warned; idle things end all the same.
    """
    if account is None:
        return None, _end_idle(settings, now, observed)
    account = charged(settings, now, account, observed)
    actions: list[Action] = []
    over = None
    for limit in _limits(settings, now, account, observed):
        if not limit.near:  # it was moved away: what was told of it is no warning of its coming back
            account = replace(account, told={name: told for name, told in account.told.items() if name != limit.name})
            continue
        account, news = _tell_once(now, account, limit.name, limit.value, _tell(limit.subject, limit.warning))
        actions += news
        if limit.reached and now - account.told[limit.name].at >= SHORTEST_NOTICE:
            over = limit
    if over is None:
        return account, [*actions, *_end_idle(settings, now, observed)]
    text = (
        f"The deployment '{settings.deployment}' is being deleted: {over.reason}. {_closing_lines(settings, account)}"
    )
    news_of_it = _tell(f"{settings.deployment} is being deleted", text)
    account, news = _tell_once(now, account, "deletion", over.value, news_of_it)
    # Nodes and clusters end here too: a stack in the middle of an update refuses to be deleted, and they cost most.
    ending = [Action(kind="lower", subject=group) for group in observed.groups]
    ending += [Action(kind="terminate", subject=cluster.identifier) for cluster in observed.clusters]
    return account, [*actions, *news, *ending, Action(kind="delete", subject=settings.stack)]


def charged(settings: GuardSettings, now: datetime, account: GuardState, observed: Observation) -> GuardState:
    """The account with what was spent since it was written, at most.

    What ran then and is gone counts until now; what is new counts from its start. A round that is not later than the
    account, such as one that AWS tries again, changes nothing.
    """
    last = max(account.as_of or observed.created, observed.created)
    if now <= last:
        return account
    stayed = settings.standing + sum(machine.price for machine in observed.machines if machine.since <= last)
    new = [machine for machine in observed.machines if machine.since > last]
    spent = max(account.rate, stayed) * _hours(now - last)
    spent += sum(machine.price * max(0.0, _hours(now - machine.since)) for machine in new)
    rate = stayed + sum(machine.price for machine in new)
    return replace(
        account, spent=account.spent + spent, as_of=now, rate=rate if observed.complete else max(rate, account.rate)
    )


def node_is_idle(settings: GuardSettings, now: datetime, node: ObservedNode) -> bool:
    """Whether it started, reported and worked too long ago."""
    patience = settings.idle if node.sign else max(settings.idle, BOOT)
    return now - max(node.since, node.sign or node.since) >= patience


def cluster_is_idle(settings: GuardSettings, now: datetime, cluster: ObservedCluster) -> bool:
    """Whether it waits, no step ended lately, and EMR marked it idle all the time; the newest marks come late."""
    expected = max(1, settings.idle // settings.period - 2)
    marked = len(cluster.marks) >= expected and min(cluster.marks) >= 1
    return cluster.state == "WAITING" and marked and now - cluster.quiet_since >= settings.idle


def _limits(settings: GuardSettings, now: datetime, account: GuardState, observed: Observation) -> Iterator[Limit]:
    name = settings.deployment
    end = observed.created + timedelta(hours=settings.max_hours + observed.extension)
    yield Limit(
        name="end",
        value=end.isoformat(),
        near=now >= end - NOTICE,
        reached=now >= end,
        subject=f"{name} ends soon",
        warning=f"The deployment '{name}' ends at {_clock(max(end, now + SHORTEST_NOTICE))}, "
        f"{settings.max_hours + observed.extension:g} hours after it was made: all that runs is ended, and its stack "
        f"is deleted. To keep it longer: shoal extend {name} --hours 4\n{_closing_lines(settings, account)}",
        reason=f"its end, {_clock(end)}, has come",
    )
    if settings.budget is not None:
        yield Limit(
            name="budget",
            value=f"{settings.budget:.2f}",
            near=account.spent >= NEAR * settings.budget,
            reached=account.spent >= settings.budget,
            subject=f"{name} has nearly spent its budget",
            warning=f"The deployment '{name}' has spent about ${account.spent:,.2f} of its budget of "
            f"${settings.budget:,.2f}, and spends ${account.rate:,.2f} an hour now. When the budget is spent, but not "
            f"before {_clock(now + SHORTEST_NOTICE)}, all that runs is ended, and its stack is deleted. To go on, "
            f"raise `budget` in the topology's `guard` and deploy it again.\n{_closing_lines(settings, account)}",
            reason=f"its budget of ${settings.budget:,.2f} is spent",
        )


def _end_idle(settings: GuardSettings, now: datetime, observed: Observation) -> list[Action]:
    """End what is idle. The groups end together: a training needs the nodes of all of them."""
    name, minutes = settings.deployment, f"{settings.idle_minutes:g} minutes"
    actions = []
    if observed.groups and observed.nodes and all(node_is_idle(settings, now, node) for node in observed.nodes):
        text = (
            f"The GPU nodes of the deployment '{name}' have done nothing for {minutes}, and are being ended. "
            "`shoal train` starts them again; what lay on their disks alone is lost."
        )
        actions += [
            _tell(f"idle GPU nodes of {name} end", text),
            *(Action(kind="lower", subject=group) for group in observed.groups),
        ]
    for cluster in observed.clusters:
        if cluster_is_idle(settings, now, cluster):
            text = (
                f"The EMR cluster {cluster.identifier} of the deployment '{name}' has done nothing for {minutes}, and "
                "is being ended. `shoal preprocess` says how to start another one."
            )
            actions += [
                _tell(f"the idle cluster of {name} ends", text),
                Action(kind="terminate", subject=cluster.identifier),
            ]
    return actions


def _tell_once(
    now: datetime, account: GuardState, name: str, value: str, news: Action
) -> tuple[GuardState, list[Action]]:
    """Tell the news, unless they were told for this value already."""
    given = account.told.get(name)
    if given and given.value == value:
        return account, []
    return replace(account, told={**account.told, name: SentNotice(value=value, at=now)}), [news]


def _tell(subject: str, text: str) -> Action:
    return Action(kind="tell", subject=f"Shoal: {subject}", text=text)


def _closing_lines(settings: GuardSettings, account: GuardState) -> str:
    lost = f"Models and datasets go with it; to keep a model: shoal fetch {settings.deployment} --output FOLDER"
    kept = f"The bucket {settings.bucket} stays, with datasets and models."
    return f"{kept if settings.keep else lost}\nSpent so far, at most: ${account.spent:,.2f}."


def _clock(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _hours(time: timedelta) -> float:
    return time / timedelta(hours=1)
