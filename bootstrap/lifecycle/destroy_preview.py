"""Shows before a deployment is destroyed what will be deleted, what stays at what cost, and what was not fetched.

An existing data bucket stays. It has none of the deployment's tags and is found only in the stack's outputs. A part
that the user may not read is no reason to refuse: it is added to the notes.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError
from shoal_guard.sweep.account import reason_of
from shoal_guard.sweep.sweeping import KEPT, UNVERIFIED, FoundResource

from bootstrap.aws import fetched, stacks
from bootstrap.aws.account import Account
from bootstrap.aws.deployment import Deployment, was_deleted
from bootstrap.lifecycle import status
from bootstrap.lifecycle.guard import GuardReport
from bootstrap.lifecycle.kept import KeptBucket, among, kept_bucket
from bootstrap.removal.ownership import Ownership
from bootstrap.removal.sweep import find_resources
from bootstrap.training.attaching import listed_trainings
from common.errors import ShoalError
from infra import topology


@dataclass(frozen=True, kw_only=True)
class DestroyPreview:
    """A deployment before its deletion; `unfetched` are the runs of `bucket` that were not fetched completely."""

    stack: str | None
    things: Sequence[FoundResource]
    running: list[str]
    trains: list[str] | None
    """The trainings that nobody stopped, with those that wait; None where they cannot be read."""
    rate: float | None
    guard: GuardReport | None
    kept: list[KeptBucket]
    unfetched: list[str]
    bucket: str | None
    unknown: bool = False
    """Whether there is nothing of it here: it is in another region, or never was."""
    notes: list[str]
    """What could not be read, and why, and what is wrong with the guard's parameters."""

    @property
    def goes(self) -> list[FoundResource]:
        return [thing for thing in self.things if thing.outcome not in (KEPT, UNVERIFIED)]

    @property
    def loses(self) -> bool:
        """Whether the runs that were not fetched are deleted."""
        return self.bucket is not None and all(kept.bucket != self.bucket for kept in self.kept)

    @property
    def nothing(self) -> bool:
        """Whether nothing was found that can be deleted."""
        return self.stack is None and all(thing.outcome == KEPT for thing in self.things)


def preview(deployment: str, account: Account) -> DestroyPreview:
    """Look through the account; deletes nothing. Raises AWS's error when the stack cannot be described."""
    described = stacks.describe(account.client("cloudformation"), topology.stack_name(deployment))
    things, notes = find_resources(deployment, account), list[str]()
    now = _read_status(deployment, account, notes) if described else None
    keeping = among(account, things)
    buckets = [thing for thing in things if thing.kind == "s3 bucket"]
    own = [thing.identifier for thing in buckets if thing.outcome != UNVERIFIED]
    data = stacks.outputs(described).get(topology.OUTPUT_DATA_BUCKET) if described else None
    if data and data not in own:
        if any(thing.outcome == UNVERIFIED for thing in buckets):
            own.append(data)
            notes.append(f"it is unknown whether s3://{data} stays")
        elif _exists(account, data):
            keeping.append(kept_bucket(account, data, "it was there before the deployment"))
    held = {thing.identifier: thing.runs for thing in buckets if thing.outcome == KEPT}
    holding = {each: held[each] if each in held else _unfetched(account, each, notes) for each in own}
    bucket = next((each for each, runs in holding.items() if runs), None)
    gone = described is None and all(thing.outcome == UNVERIFIED for thing in things)
    owner, made_from = stacks.owner_and_topology(described) or ("unknown", "unknown")
    return DestroyPreview(
        stack=f"{described['StackName']}, {described['StackStatus']}, owner {owner}, topology {made_from}"
        if described
        else None,
        things=things,
        running=_running(now),
        trains=_trains(deployment, account, described, now, notes) if described else [],
        rate=now.rate if now else None,
        guard=now.guard if now else None,
        kept=keeping,
        unfetched=list(holding[bucket]) if bucket else [],
        bucket=bucket,
        unknown=gone
        and bool(Ownership(account, deployment).elsewhere or not (things or was_deleted(deployment, account))),
        notes=notes,
    )


def _read_status(deployment: str, account: Account, notes: list[str]) -> status.Status | None:
    try:
        return status.read_status(deployment, account)
    except (BotoCoreError, ClientError, ShoalError) as error:
        notes.append(f"what runs now, and its cost, cannot be read: {error}")
        return None


def _trains(
    deployment: str, account: Account, stack: stacks.Stack, now: status.Status | None, notes: list[str]
) -> list[str] | None:
    outputs = stacks.outputs(stack)
    has_nodes = now is None or now.jobs or any(group.desired or group.running for group in now.groups)
    if not (has_nodes and topology.OUTPUT_DATA_BUCKET in outputs):
        return []
    there = Deployment(name=deployment, topology="", session=account.session, outputs=outputs)
    try:
        return [each.name for each in listed_trainings(there) if not (each.is_stopping or each.has_ended)]
    except (BotoCoreError, ClientError, ShoalError) as error:
        notes.append(f"it is unknown which trainings run: {error}")
        return None


def _exists(account: Account, bucket: str) -> bool:
    """Whether a bucket may be there: a deletion that failed later has deleted it."""
    try:
        account.client("s3").head_bucket(Bucket=bucket)
    except ClientError as error:
        return error.response["Error"]["Code"] != "404"
    return True


def _unfetched(account: Account, bucket: str, notes: list[str]) -> list[str]:
    try:
        return fetched.unfetched(account.client("s3"), bucket)
    except (BotoCoreError, ClientError) as error:
        notes.append(f"it is unknown whether runs in s3://{bucket} were fetched: {reason_of(error)}")
        return []


def _running(now: status.Status | None) -> list[str]:
    if now is None:
        return []
    running = [
        f"{count} {kind} ({group.name})" for group in now.groups for kind, count in sorted(Counter(group.nodes).items())
    ]
    if now.cluster and now.cluster.nodes:
        running.append(f"EMR cluster {now.cluster.identifier} ({now.cluster.state}, nodes: {len(now.cluster.nodes)})")
    return running
