"""Decides what the guard does, from what it has read. Nothing here calls AWS.

Nothing is deleted without a warning about the same limit that is at least ten minutes old. A limit that has changed
since then needs a new warning.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

NOTICE = timedelta(minutes=30)
"""How long before the end of a deployment its owner is warned."""
SHORTEST_NOTICE = timedelta(minutes=10)
"""The shortest time from a warning to the deletion, also after a late warning."""
NEAR = 0.9
"""The part of the budget at which the owner is warned."""
_LONGEST_SUBJECT = 99
"""Of SNS, which refuses longer ones."""
STOPPING = timedelta(minutes=10)
"""How long runs may take to stop with a checkpoint before all is deleted."""
BOOT, METAL_BOOT = timedelta(minutes=20), timedelta(minutes=40)
"""How long a node of a group without a report may still be booting: a little longer than `shoal train` waits."""


@dataclass(frozen=True, kw_only=True)
class GuardSettings:
    """The guard's settings, as JSON in its environment. `gpu` and `emr` are dollars an hour by instance type.

    These are on-demand prices, the upper limit of spot prices, and include the node's volumes.
    """

    deployment: str
    stack: str
    """The stack's id, not its name, because a later stack with the same name has its own guard."""
    account: str
    """The parameter of Systems Manager in which the guard keeps its account."""
    extension: str
    """The parameter with the hours that were added to the deployment's life."""
    max_hours: float
    idle_minutes: float
    gpu: Mapping[str, float]
    emr: Mapping[str, float]
    standing: float
    """Dollars an hour of what runs until the stack is deleted."""
    by_use: Mapping[str, float] = field(default_factory=dict)
    """Dollars a GiB: `efs_read_gib`, `efs_write_gib`, `nat_gib`; what is missing is not counted."""
    jobs: str = ""
    """What the names of its training jobs of SageMaker begin with; empty: it has none."""
    job: float = 0.0
    """Dollars an hour of all instances of one."""
    bucket: str = ""
    """The data bucket, by which it is known when nodes worked last; empty for a stack that is no deployment of Shoal,
    of which no node counts as idle."""
    nodes_prefix: str = ""
    requests: str = ""
    """The key of the runs that are wanted of the nodes."""
    copy: str = ""
    """The key of what the two parameters hold, where nodes may not write; empty: there is no copy."""
    start_tag: str = ""
    """The tag of a group that says when its nodes start."""
    unpriced: str = ""
    """What of all that has no price, and counts as 0."""
    keep: bool | None = None
    """Whether the data bucket outlives the stack; None: it does if it holds runs that were not fetched."""
    budget: float | None = None
    topic: str = ""
    """The SNS topic for warnings; empty: none."""

    @property
    def what(self) -> str:
        """What the guard ends, for its owner."""
        return f"The {'deployment' if self.bucket else 'stack'} '{self.deployment}'"

    @property
    def begun(self) -> str:
        """From what its age counts."""
        return "created" if self.bucket else "first guarded"

    def price(self, of: Mapping[str, float], instance_type: str) -> float:
        """Dollars an hour of a type; of one that nobody foresaw as much as the dearest."""
        return of.get(instance_type, 0.0 if self.bucket else max(of.values(), default=0.0))

    @property
    def longer(self) -> str:
        if self.bucket:
            return f"shoal extend {self.deployment} --hours 4"
        return f"aws ssm put-parameter --overwrite --name {self.extension} --value HOURS_TO_ADD_IN_ALL"

    @property
    def raised(self) -> str:
        return "in the topology's `guard`" if self.bucket else "of its Guard"

    @property
    def idle(self) -> timedelta:
        """How long nodes and clusters may be idle."""
        return timedelta(minutes=self.idle_minutes)

    @property
    def period(self) -> timedelta:
        """The period of an `IsIdle` value: EMR's five minutes, or longer, so that one request returns all values."""
        return timedelta(minutes=5 * (1 + self.idle_minutes // 7200))


@dataclass(frozen=True, kw_only=True)
class ObservedMachine:
    """A machine that has run since a time, at a price in dollars an hour."""

    price: float
    since: datetime


@dataclass(frozen=True, kw_only=True)
class ObservedNode(ObservedMachine):
    """A node that trains or reads; `sign` is when it last reported its boot or its work."""

    sign: datetime | None = None
    boot: timedelta = BOOT
    """How long it may take to report."""


@dataclass(frozen=True, kw_only=True)
class ObservedCluster:
    """An EMR cluster that has not terminated."""

    identifier: str
    state: str
    quiet_since: datetime
    """When it became ready, or when its newest step ended."""
    marks: Sequence[float] = ()
    """EMR's metric `IsIdle`: 1 where the cluster was idle. A short step may run between two values."""
    machines: Sequence[ObservedMachine] = ()


@dataclass(frozen=True, kw_only=True)
class ObservedJob(ObservedMachine):
    """A training job of SageMaker that has not ended."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Observation:
    created: datetime
    extension: float = 0.0
    groups: Sequence[str] = ()
    """The auto scaling groups that have or start nodes."""
    staying: Sequence[str] = ()
    """Those of them whose nodes run from the deployment on, between trainings, too."""
    running: bool = False
    """Whether a run that is wanted of the nodes has not ended."""
    over: str = ""
    """The last of the runs that were wanted of the nodes, where all have ended and none keeps them."""
    nodes: Sequence[ObservedNode] = ()
    clusters: Sequence[ObservedCluster] = ()
    jobs: Sequence[ObservedJob] = ()
    by_use: float = 0.0
    """Dollars of what was paid by use since the creation."""
    complete: bool = True
    """Whether every read succeeded."""

    @property
    def machines(self) -> list[ObservedMachine]:
        return [*self.nodes, *self.jobs, *(machine for cluster in self.clusters for machine in cluster.machines)]


@dataclass(frozen=True, kw_only=True)
class SentNotice:
    """When a warning was sent, and about which value of a limit."""

    value: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class GuardState:
    """What the guard keeps from one run to the next."""

    spent: float = 0.0
    as_of: datetime | None = None
    rate: float = 0.0
    """Dollars an hour at the last run."""
    by_use: float = 0.0
    """The part of `spent` that was paid by use."""
    since: datetime | None = None
    """Of a stack that is no deployment: the guard's first run, because the stack may be older than its guard."""
    told: Mapping[str, SentNotice] = field(default_factory=dict)
    """The sent warnings, by subject: `end`, `budget`, `deletion`; and under `stop` when runs were asked to stop."""


@dataclass(frozen=True, kw_only=True)
class Action:
    """Send a text to the owner (`tell`), have the runs in the document `subject` (`stop`) or a training job stop with a
    checkpoint, or act on the resource that `subject` names."""

    kind: Literal["tell", "stop", "stop job", "lower", "terminate", "delete"]
    subject: str
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A limit that may end the deployment. When `value` changes, a new warning is due."""

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
    """The account after this run, and the actions in their order.

    Without an account the stack is not deleted, because it is unknown whether the owner was warned. A deployment's is
    without one only while neither Systems Manager nor S3 answers. Idle clusters are ended nevertheless, and nodes
    that are known to be idle. Runs are asked to stop with a checkpoint first, and are waited for a while, also
    where it is unknown whether any node is there.
    """
    if account is None:
        return None, _end_idle(settings, now, observed)
    if not settings.bucket:
        account = replace(account, since=account.since or now)
        observed = replace(observed, created=account.since or now)
    account = charged(settings, now, account, observed)
    actions: list[Action] = []
    over = None
    for limit in _limits(settings, now, account, observed):
        if not limit.near:  # when the limit is near again, a new warning is due
            account = replace(account, told={name: told for name, told in account.told.items() if name != limit.name})
            continue
        account, news = _tell_once(now, account, limit.name, limit.value, _tell(limit.subject, limit.warning))
        actions += news
        if limit.reached and now - account.told[limit.name].at >= SHORTEST_NOTICE:
            over = limit
    if over is None:
        return account, [*actions, *_end_idle(settings, now, observed)]
    stops = [Action(kind="stop job", subject=job.name) for job in observed.jobs]
    if observed.running and (observed.nodes or not observed.complete):
        stops.append(Action(kind="stop", subject=settings.requests))
    if stops:
        account, _ = _tell_once(now, account, "stop", over.value, stops[0])
        if now - account.told["stop"].at < STOPPING:
            return account, [*actions, *stops]  # in each round, as one may fail
    text = f"{settings.what} is being deleted: {over.reason}. {_closing_lines(settings, account)}"
    news_of_it = _tell(f"{settings.deployment} is being deleted", text)
    account, news = _tell_once(now, account, "deletion", over.value, news_of_it)
    # Also end nodes and clusters, because they cost most and CloudFormation refuses to delete a stack during an update.
    ending = [Action(kind="lower", subject=group) for group in observed.groups]
    ending += [Action(kind="terminate", subject=cluster.identifier) for cluster in observed.clusters]
    return account, [*actions, *news, *ending, Action(kind="delete", subject=settings.stack)]


def charged(settings: GuardSettings, now: datetime, account: GuardState, observed: Observation) -> GuardState:
    """The account, with an upper limit of what was spent since it was written.

    A machine that has ended since then counts until now; a new one counts from its start. A run that is not later than
    the account, such as one that AWS repeats, changes nothing.
    """
    last = max(account.as_of or observed.created, observed.created)
    if now <= last:
        return account
    stayed = settings.standing + sum(machine.price for machine in observed.machines if machine.since <= last)
    new = [machine for machine in observed.machines if machine.since > last]
    spent = max(account.rate, stayed) * _hours(now - last)
    spent += sum(machine.price * max(0.0, _hours(now - machine.since)) for machine in new)
    rate = stayed + sum(machine.price for machine in new)
    by_use = max(account.by_use, observed.by_use)
    return replace(
        account,
        spent=account.spent + spent + by_use - account.by_use,
        by_use=by_use,
        as_of=now,
        rate=rate if observed.complete else max(rate, account.rate),
    )


def node_is_idle(settings: GuardSettings, now: datetime, node: ObservedNode) -> bool:
    """Whether its start, its last report and its last work are all too long ago, and would have been seen."""
    if not settings.bucket:
        return False
    patience = settings.idle if node.sign else max(settings.idle, node.boot)
    return now - max(node.since, node.sign or node.since) >= patience


def cluster_is_idle(settings: GuardSettings, now: datetime, cluster: ObservedCluster) -> bool:
    """Whether it waits, no step has ended recently, and all `IsIdle` values are 1; the newest values arrive late."""
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
        warning=f"{settings.what} ends at {_clock(max(end, now + SHORTEST_NOTICE))}, "
        f"{settings.max_hours + observed.extension:g} hours after it was {settings.begun}. Then all its nodes are "
        f"ended and its stack is deleted. To keep it longer: {settings.longer}\n{_closing_lines(settings, account)}",
        reason=f"it has reached its end, {_clock(end)}",
    )
    if settings.budget is not None:
        yield Limit(
            name="budget",
            value=f"{settings.budget:.2f}",
            near=account.spent >= NEAR * settings.budget,
            reached=account.spent >= settings.budget,
            subject=f"{name} has nearly spent its budget",
            warning=f"{settings.what} has spent about ${account.spent:,.2f} of its budget of "
            f"${settings.budget:,.2f}, and spends ${account.rate:,.2f} an hour now. When the budget is spent, but not "
            f"before {_clock(now + SHORTEST_NOTICE)}, all its nodes are ended and its stack is deleted. To keep it, "
            f"raise `budget` {settings.raised} and deploy it again.\n{_closing_lines(settings, account)}",
            reason=f"its budget of ${settings.budget:,.2f} is spent",
        )


def _end_idle(settings: GuardSettings, now: datetime, observed: Observation) -> list[Action]:
    """End idle nodes and clusters, and nodes whose run has ended. All node groups end together, because a training
    needs the nodes of all of them."""
    name, minutes = settings.deployment, f"{settings.idle_minutes:g} minutes"
    what = settings.what[0].lower() + settings.what[1:]
    again = " `shoal preprocess` says how to start another one." if settings.bucket else ""
    actions = []
    ended = [each for each in observed.groups if each not in observed.staying] if observed.over else []
    if ended:
        text = (
            f"The run {observed.over} of the deployment '{name}' has ended, and its nodes are being ended. To copy its "
            f"results: shoal fetch {name} --run {observed.over} --output FOLDER"
        )
        actions += [
            _tell(f"a run of {name} has ended", text),
            *(Action(kind="lower", subject=group) for group in ended),
        ]
    elif observed.groups and observed.nodes and all(node_is_idle(settings, now, node) for node in observed.nodes):
        text = (
            f"The training nodes of the deployment '{name}' were idle for {minutes} and are being ended. `shoal train` "
            "starts new ones. Files that were only on their disks are lost."
        )
        actions += [
            _tell(f"the idle training nodes of {name} are being ended", text),
            *(Action(kind="lower", subject=group) for group in observed.groups),
        ]
    for cluster in observed.clusters:
        if cluster_is_idle(settings, now, cluster):
            text = f"The EMR cluster {cluster.identifier} of {what} was idle for {minutes} and is being ended.{again}"
            actions += [
                _tell(f"the idle cluster of {name} is being ended", text),
                Action(kind="terminate", subject=cluster.identifier),
            ]
    return actions


def _tell_once(
    now: datetime, account: GuardState, name: str, value: str, news: Action
) -> tuple[GuardState, list[Action]]:
    """Send the message, unless it was already sent for this value."""
    given = account.told.get(name)
    if given and given.value == value:
        return account, []
    return replace(account, told={**account.told, name: SentNotice(value=value, at=now)}), [news]


def _tell(subject: str, text: str) -> Action:
    return Action(kind="tell", subject=f"Guard: {subject}"[:_LONGEST_SUBJECT], text=text)


def _closing_lines(settings: GuardSettings, account: GuardState) -> str:
    fetch = f"shoal fetch {settings.deployment} --output FOLDER"
    data = {
        True: f"The bucket {settings.bucket} is kept, with its datasets and models.",
        False: f"Models and datasets are deleted with it. To keep a model: {fetch}",
        None: f"If the bucket {settings.bucket} holds runs that were not fetched, it is kept, with its datasets and "
        f"models, and continues to cost money; else it is deleted with it. To fetch the runs: {fetch}",
    }
    spent = f"Spent so far, at most: ${account.spent:,.2f}"
    if settings.unpriced:
        spent += f", besides what has no price known to it ({settings.unpriced})"
    kept = data[settings.keep] if settings.bucket else "Its data are deleted with it, but for what the stack retains."
    return f"{kept}\n{spent}."


def _clock(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _hours(time: timedelta) -> float:
    return time / timedelta(hours=1)
