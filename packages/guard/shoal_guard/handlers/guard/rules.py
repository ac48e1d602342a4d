"""Decides the guard's actions from its observations. Nothing here calls AWS.

The guard deletes the stack only if it sent a warning about the same limit at least ten minutes before. If the limit has
changed since the warning, it needs a new warning.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from .observation import Observation, ObservedCluster, ObservedNode

NOTICE = timedelta(minutes=30)
"""Time from the warning to the end of life."""
SHORTEST_NOTICE = timedelta(minutes=10)
"""Shortest time from a warning to the deletion, even if the warning is sent late."""
NEAR = 0.9
"""Fraction of the budget at which the owner gets a warning."""
_LONGEST_SUBJECT = 99
"""Longest subject that SNS accepts, in characters."""
STOPPING = timedelta(minutes=10)
"""Time that runs get to stop with a checkpoint before the stack is deleted."""


@dataclass(frozen=True, kw_only=True)
class GuardSettings:
    """Settings of the guard, stored as JSON in the function's environment.

    `gpu` and `emr` are dollars per hour by instance type, including a node's volumes. They are on-demand prices, which
    are the upper limit of spot prices.
    """

    deployment: str
    stack: str
    """Id of the stack. Its name would not do, because a later stack of the same name has its own guard."""
    account: str
    """Name of the Systems Manager parameter in which the guard stores its state between rounds."""
    extension: str
    """Name of the Systems Manager parameter with the extension in hours."""
    max_hours: float
    idle_minutes: float
    gpu: Mapping[str, float] = field(default_factory=dict)
    emr: Mapping[str, float] = field(default_factory=dict)
    standing: float = 0.0
    """Dollars per hour of the resources that run until the stack is deleted."""
    by_use: Mapping[str, float] = field(default_factory=dict)
    """Dollars per GiB: `efs_read_gib`, `efs_write_gib`, `nat_gib`. A missing price counts as 0."""
    jobs: str = ""
    """Name prefix of the deployment's SageMaker training jobs; empty without such jobs."""
    job: float = 0.0
    """Dollars per hour of one training job with all its instances."""
    bucket: str = ""
    """Name of the data bucket, in which nodes report their work. It is empty for a stack that is not a Shoal
    deployment. The guard of such a stack counts no dollars."""
    nodes_prefix: str = ""
    requests: str = ""
    """Key of the document with the requested runs."""
    copy: str = ""
    """Key of the copy of both parameters, which nodes must not be able to write; empty without a copy."""
    start_tag: str = ""
    """Key of the tag of an auto scaling group that says when the nodes of the group start."""
    unpriced: str = ""
    """Resources without a known price, as a list for messages. Their price counts as 0."""
    keep: bool | None = None
    """Whether the data bucket outlives the stack. If None, it does if it contains runs that were not fetched."""
    budget: float | None = None
    topic: str = ""
    """ARN of the SNS topic for warnings; empty without warnings."""

    @property
    def title(self) -> str:
        """Name of the guarded deployment or stack in messages."""
        return f"the {'deployment' if self.bucket else 'stack'} '{self.deployment}'"

    @property
    def age_event(self) -> str:
        """Participle for messages that names the event from which the age of the stack counts."""
        return "created" if self.bucket else "first guarded"

    @property
    def extend_command(self) -> str:
        """Shell command that extends the life of the stack."""
        if self.bucket:
            return f"shoal extend {self.deployment} --hours 4"
        return f"aws ssm put-parameter --overwrite --name {self.extension} --value HOURS_TO_ADD_IN_ALL"

    @property
    def idle(self) -> timedelta:
        """Time after which idle nodes and clusters are terminated."""
        return timedelta(minutes=self.idle_minutes)

    @property
    def period(self) -> timedelta:
        """Period of an `IsIdle` value: EMR's five minutes, or so much longer that one request returns all values."""
        return timedelta(minutes=5 * (1 + self.idle_minutes // 7200))


@dataclass(frozen=True, kw_only=True)
class SentNotice:
    """A sent warning: when it was sent, and the value that the limit had at that time."""

    value: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class GuardState:
    """State that the guard stores between rounds. `spent` is in dollars, up to the time `as_of`."""

    spent: float = 0.0
    as_of: datetime | None = None
    rate: float = 0.0
    """Dollars per hour in the last round."""
    by_use: float = 0.0
    """Part of `spent` that is billed by use."""
    since: datetime | None = None
    """Time of the guard's first round, for a stack that is not a Shoal deployment. Such a stack may be older than its
    guard."""
    notices: Mapping[str, SentNotice] = field(default_factory=dict)
    """Sent warnings by limit: `end`, `budget`, `deletion`. The entry `stop` has the time at which the guard asked runs
    to stop."""


@dataclass(frozen=True, kw_only=True)
class Action:
    """An action of the guard.

    `notify` sends `text` to the owner. `stop` asks all runs in the document `subject` to stop with a checkpoint. All
    other kinds act on the resource `subject`. The `text` of `delete` is the beginning of the deletion's token.
    """

    kind: Literal["notify", "stop", "stop job", "scale to zero", "terminate", "delete"]
    subject: str
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A limit of the stack's life or budget. When it is `reached`, the guard deletes the stack.

    If `value` has changed since the warning, a new warning is required. `due` is the expected time at which the limit
    is reached; None if nothing is spent now.
    """

    name: str
    value: str
    near: bool
    reached: bool
    due: datetime | None
    subject: str
    warning: str
    reason: str
    remedy: str

    @property
    def token(self) -> str:
        """Beginning of CloudFormation's token for the deletion, which `shoal_guard.deletion` reads."""
        return f"guard-budget-{self.value.replace('.', '-')}" if self.name == "budget" else f"guard-{self.name}"


def decide(
    settings: GuardSettings, now: datetime, account: GuardState | None, observed: Observation
) -> tuple[GuardState | None, list[Action]]:
    """Return the guard's state after this round, and the actions in their order. `account` is the state before.

    If the state is unknown, the guard only terminates idle nodes and clusters. It does not delete the stack, because it
    may not have warned the owner. The state of a Shoal deployment is unknown only while both Systems Manager and S3
    fail.

    Before a deletion the guard asks active runs to stop with a checkpoint, and waits `STOPPING`. It does so, too, if it
    cannot read whether any node runs.
    """
    if account is None:
        return None, _end_idle(settings, now, observed)
    if settings.bucket:
        account = charged(settings, now, account, observed)
    else:
        account = replace(account, since=account.since or now)
        observed = replace(observed, created=account.since or now)
    actions: list[Action] = []
    reached = None
    for limit in limits(settings, now, account, observed):
        if not limit.near:  # forget the warning, because the limit needs a new one when it is near again
            kept = {name: notice for name, notice in account.notices.items() if name != limit.name}
            account = replace(account, notices=kept)
            continue
        message = _notify(limit.subject, limit.warning)
        account, messages = _notify_once(now, account, limit.name, limit.value, message)
        actions += messages
        if limit.reached and now - account.notices[limit.name].at >= SHORTEST_NOTICE:
            reached = limit
    if reached is None:
        return account, [*actions, *_end_idle(settings, now, observed)]
    stops = [Action(kind="stop job", subject=job.name) for job in observed.jobs]
    if observed.run_is_active and (observed.nodes or not observed.complete):
        stops.append(Action(kind="stop", subject=settings.requests))
    if stops:
        account, _ = _notify_once(now, account, "stop", reached.value, stops[0])
        if now - account.notices["stop"].at < STOPPING:
            return account, [*actions, *stops]  # repeat these actions in each round, because one may fail
    text = f"The guard is deleting {settings.title}, because {reached.reason}.\n{_closing_lines(settings, account)}"
    message = _notify(f"{settings.deployment} is being deleted", text)
    account, messages = _notify_once(now, account, "deletion", reached.value, message)
    # Also terminate nodes and clusters, because they cost most, and because CloudFormation refuses to delete a stack
    # during an update.
    ending = [Action(kind="scale to zero", subject=group) for group in observed.groups]
    ending += [Action(kind="terminate", subject=cluster.identifier) for cluster in observed.clusters]
    return account, [*actions, *messages, *ending, Action(kind="delete", subject=settings.stack, text=reached.token)]


def charged(settings: GuardSettings, now: datetime, account: GuardState, observed: Observation) -> GuardState:
    """Return the state `account`, increased by an upper limit of the dollars spent since it was written.

    A machine that has terminated since then is charged until now. A new machine is charged from its start. A round that
    is not later than `account`, such as a repeated round, changes nothing.
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
    """Return whether a node's start and its last report of boot or work are both too long ago."""
    patience = settings.idle if node.last_report else max(settings.idle, node.boot)
    return now - max(node.since, node.last_report or node.since) >= patience


def cluster_is_idle(settings: GuardSettings, now: datetime, cluster: ObservedCluster) -> bool:
    """Return whether a cluster waits for steps, no step ended recently, and all `IsIdle` values are 1.

    Two values may be missing, because the newest values arrive late.
    """
    expected = max(1, settings.idle // settings.period - 2)
    is_idle = len(cluster.idle_values) >= expected and min(cluster.idle_values) >= 1
    return cluster.state == "WAITING" and is_idle and now - cluster.idle_since >= settings.idle


def limits(settings: GuardSettings, now: datetime, account: GuardState, observed: Observation) -> Iterator[Limit]:
    """Yield the limits of the stack. Of `observed`, only the creation time and the extension count."""
    name = settings.deployment
    end = observed.created + timedelta(hours=settings.max_hours + observed.extension)
    remedy = f"To extend its life, run: {settings.extend_command}"
    yield Limit(
        name="end",
        value=end.isoformat(),
        near=now >= end - NOTICE,
        reached=now >= end,
        due=end,
        subject=f"{name} ends soon",
        warning=f"The guard will terminate all nodes of {settings.title} and delete its stack at "
        f"{_clock(max(end, now + SHORTEST_NOTICE))}, {settings.max_hours + observed.extension:g} hours after it was "
        f"{settings.age_event}.\n{remedy}\n{_closing_lines(settings, account)}",
        reason=f"its life {'ended' if now >= end else 'ends'} at {_clock(end)}",
        remedy=remedy,
    )
    if settings.budget is not None:
        left = settings.budget - account.spent
        is_spent = left <= 0
        due = (
            now if is_spent else (account.as_of or now) + timedelta(hours=left / account.rate) if account.rate else None
        )
        # `shoal deploy` refuses while a run is active
        remedy = "To keep it, stop an active run, then raise `budget` in the topology's `guard` and deploy again."
        yield Limit(
            name="budget",
            value=f"{settings.budget:.2f}",
            near=account.spent >= NEAR * settings.budget,
            reached=is_spent,
            due=due,
            subject=f"{name} has {'' if is_spent else 'nearly '}spent its budget",
            warning=f"T{settings.title[1:]} has spent about ${account.spent:,.2f} of its budget of "
            f"${settings.budget:,.2f}, and now spends ${account.rate:,.2f} an hour. "
            f"{'The guard' if is_spent else 'When the budget is spent, the guard'} will terminate all its nodes and "
            f"delete its stack, but not before {_clock(now + SHORTEST_NOTICE)}.\n{remedy}\n"
            f"{_closing_lines(settings, account)}",
            reason=f"its budget of ${settings.budget:,.2f} {'is' if is_spent else 'will then be'} spent",
            remedy=remedy,
        )


def _end_idle(settings: GuardSettings, now: datetime, observed: Observation) -> list[Action]:
    """Return the actions that terminate idle nodes and clusters, and nodes after their run has ended.

    All node groups are scaled to zero together, because a run needs the nodes of all groups.
    """
    name, minutes = settings.deployment, f"{settings.idle_minutes:g} minutes"
    restart = " `shoal preprocess` prints how to start a new cluster." if settings.bucket else ""
    actions = []
    ended = [each for each in observed.groups if each not in observed.persistent_groups] if observed.ended_run else []
    if ended:
        text = (
            f"The run {observed.ended_run} of {settings.title} has ended, and the guard is terminating its nodes.\n"
            f"To copy its results, run: shoal fetch {name} --run {observed.ended_run} --output FOLDER"
        )
        actions += [
            _notify(f"a run of {name} has ended", text),
            *(Action(kind="scale to zero", subject=group) for group in ended),
        ]
    elif observed.groups and observed.nodes and all(node_is_idle(settings, now, node) for node in observed.nodes):
        text = (
            f"The guard is terminating the training nodes of {settings.title}, because they were idle for {minutes}. "
            "Files that were only on their disks are lost. `shoal train` starts new nodes."
        )
        actions += [
            _notify(f"the idle training nodes of {name} are being terminated", text),
            *(Action(kind="scale to zero", subject=group) for group in observed.groups),
        ]
    for cluster in observed.clusters:
        if cluster_is_idle(settings, now, cluster):
            text = (
                f"The guard is terminating the EMR cluster {cluster.identifier} of {settings.title}, because it was "
                f"idle for {minutes}.{restart}"
            )
            actions += [
                _notify(f"the idle cluster of {name} is being terminated", text),
                Action(kind="terminate", subject=cluster.identifier),
            ]
    return actions


def _notify_once(
    now: datetime, account: GuardState, name: str, value: str, message: Action
) -> tuple[GuardState, list[Action]]:
    """Return the guard's state, which records that the message is sent, and a list with the message.

    The list is empty if the message was already sent for this `value` of the limit `name`."""
    sent = account.notices.get(name)
    if sent and sent.value == value:
        return account, []
    return replace(account, notices={**account.notices, name: SentNotice(value=value, at=now)}), [message]


def _notify(subject: str, text: str) -> Action:
    return Action(kind="notify", subject=f"Guard: {subject}"[:_LONGEST_SUBJECT], text=text)


def _closing_lines(settings: GuardSettings, account: GuardState) -> str:
    if not settings.bucket:
        return "The deletion includes all data, except resources that the stack retains."
    fetch = f"shoal fetch {settings.deployment} --output FOLDER"
    data = {
        True: f"The bucket {settings.bucket} is kept, with its datasets and models.",
        False: f"The deletion includes all datasets and models. To keep a model, run: {fetch}",
        None: f"The bucket {settings.bucket} is kept, and costs money, if it contains runs that were not fetched. "
        f"Otherwise it is deleted, with its datasets and models. To fetch the runs, run: {fetch}",
    }
    spent = f"Spent so far: at most ${account.spent:,.2f}"
    if settings.unpriced:
        spent += f", without resources of unknown price ({settings.unpriced})"
    return f"{data[settings.keep]}\n{spent}."


def _clock(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _hours(time: timedelta) -> float:
    return time / timedelta(hours=1)
