"""Shows before a deployment is destroyed what will be deleted, what stays at what cost, and which models are lost.

An existing data bucket stays. It has none of the deployment's tags and is found only in the stack's outputs. A part
that the user may not read is no reason to refuse: it is added to the notes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.aws import stacks
from bootstrap.aws.account import Account
from bootstrap.aws.ownership import Ownership, reason_of
from bootstrap.errors import ShoalError
from bootstrap.lifecycle import fetch, status
from bootstrap.lifecycle.guard import GuardReport
from bootstrap.removal.sweep import KEPT, UNVERIFIED, FoundResource, find_resources
from infra import catalog, topology
from infra.errors import TopologyError

_GIB = 1 << 30


@dataclass(frozen=True, kw_only=True)
class KeptBucket:
    """A bucket that stays."""

    bucket: str
    objects: int
    bytes: int
    monthly: float | None
    """Dollars a month; None without a price list for the region."""
    why: str


@dataclass(frozen=True, kw_only=True)
class DestroyPreview:
    """A deployment before its deletion; `lost` are the runs whose models are deleted with `lost_bucket`."""

    stack: str | None
    things: Sequence[FoundResource]
    running: list[str]
    rate: float | None
    guard: GuardReport | None
    kept: list[KeptBucket]
    lost: list[str]
    lost_bucket: str | None
    elsewhere: str | None
    """Another region with a deployment of this name, when there is nothing of it here."""
    notes: list[str]
    """What could not be read, and why, and what is wrong with the guard's parameters."""

    @property
    def goes(self) -> list[FoundResource]:
        """What will be deleted."""
        return [thing for thing in self.things if thing.outcome not in (KEPT, UNVERIFIED)]

    @property
    def nothing(self) -> bool:
        """Whether nothing was found that can be deleted."""
        return self.stack is None and all(thing.outcome == KEPT for thing in self.things)


def preview(deployment: str, account: Account) -> DestroyPreview:
    """Look through the account; deletes nothing. Raises AWS's error when the stack cannot be described."""
    described = stacks.describe(account.client("cloudformation"), topology.stack_name(deployment))
    things, notes = find_resources(deployment, account), list[str]()
    now = _read_status(deployment, account, notes) if described else None
    kept = [_kept(account, thing.identifier, "its topology keeps it") for thing in things if thing.outcome == KEPT]
    buckets = [thing for thing in things if thing.kind == "s3 bucket"]
    own = [thing.identifier for thing in buckets if thing.outcome not in (KEPT, UNVERIFIED)]
    data = stacks.outputs(described).get(topology.OUTPUT_DATA_BUCKET) if described else None
    if data and data not in (*own, *(each.bucket for each in kept)):
        if any(thing.outcome == UNVERIFIED for thing in buckets):
            own.append(data)
            notes.append(f"it is unknown whether s3://{data} stays")
        else:
            kept.append(_kept(account, data, "it was there before the deployment"))
    holding = {bucket: found for bucket in own if (found := _models(account, bucket, notes))}
    bucket = next(iter(holding), None)
    gone = described is None and all(thing.outcome == UNVERIFIED for thing in things)
    owner, made_from = stacks.owner_and_topology(described) or ("unknown", "unknown")
    return DestroyPreview(
        stack=f"{described['StackName']}, {described['StackStatus']}, owner {owner}, topology {made_from}"
        if described
        else None,
        things=things,
        running=_running(now),
        rate=now.rate if now else None,
        guard=now.guard if now else None,
        kept=kept,
        lost=holding[bucket] if bucket else [],
        lost_bucket=bucket,
        elsewhere=Ownership(account, deployment).elsewhere if gone else None,
        notes=notes,
    )


def _read_status(deployment: str, account: Account, notes: list[str]) -> status.Status | None:
    try:
        now = status.read_status(deployment, account)
    except (BotoCoreError, ClientError, ShoalError) as error:
        notes.append(f"what runs now, and its cost, cannot be read: {error}")
        return None
    notes += now.guard.broken if now.guard else ()
    return now


def _models(account: Account, bucket: str, notes: list[str]) -> list[str]:
    try:
        return fetch.models(account.client("s3"), bucket)
    except (BotoCoreError, ClientError, ShoalError) as error:
        notes.append(f"it is unknown whether models in s3://{bucket} would be lost: {error}")
        return []


def _running(now: status.Status | None) -> list[str]:
    if now is None:
        return []
    running = [f"{group.running} {group.instance_type} ({group.name})" for group in now.groups if group.running]
    if now.cluster and now.cluster.nodes:
        running.append(f"EMR cluster {now.cluster.identifier} ({now.cluster.state}, nodes: {len(now.cluster.nodes)})")
    return running


def _kept(account: Account, bucket: str, why: str) -> KeptBucket:
    count, size = 0, 0
    try:
        for each in account.items("s3", "list_object_versions", "Versions", Bucket=bucket):
            count, size = count + 1, size + each["Size"]
    except (BotoCoreError, ClientError) as error:
        why = f"{why}; its content cannot be listed: {reason_of(error)}"
    try:
        price = catalog.prices(account.region).other.s3_gib_month
    except TopologyError:
        return KeptBucket(bucket=bucket, objects=count, bytes=size, monthly=None, why=why)
    return KeptBucket(bucket=bucket, objects=count, bytes=size, monthly=size / _GIB * price, why=why)
