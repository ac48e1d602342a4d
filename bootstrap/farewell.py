"""What is said before a deployment is destroyed: what goes, what stays and for how much, which models would be lost.

The easy mistake is to count an existing data bucket among what goes: it was there before the deployment, carries none
of its tags, and is found only through the stack's outputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from botocore.exceptions import ClientError

from bootstrap import fetch, stacks, status
from bootstrap.account import Account
from bootstrap.errors import ShoalError
from bootstrap.guard import Guard
from bootstrap.ownership import Claim
from bootstrap.sweep import KEPT, Thing, find
from infra import catalog, topology
from infra.errors import TopologyError

_GIB = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A bucket that stays."""

    bucket: str
    objects: int
    bytes: int
    monthly: float | None
    """Dollars a month; None without a price list for the region."""
    why: str


@dataclass(frozen=True, kw_only=True)
class Farewell:
    """A deployment before it goes; `lost` are the runs whose models go with `lost_bucket`."""

    stack: str | None
    things: Sequence[Thing]
    running: list[str]
    rate: float | None
    guard: Guard | None
    kept: list[Kept]
    lost: list[str]
    lost_bucket: str | None
    elsewhere: str | None
    """Where there is a deployment of this name, when there is nothing of it here."""

    @property
    def goes(self) -> list[Thing]:
        """What will be deleted."""
        return [thing for thing in self.things if thing.outcome != KEPT]

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to destroy."""
        return self.stack is None and not self.goes


def look(deployment: str, account: Account) -> Farewell:
    """Look through the account; deletes nothing."""
    things = find(deployment, account)
    described = stacks.describe(account.client("cloudformation"), topology.stack_name(deployment))
    now = status.look(deployment, account) if described else None
    kept = [_kept(account, thing.identifier, "its topology keeps it") for thing in things if thing.outcome == KEPT]
    data = now.outputs.get(topology.OUTPUT_DATA_BUCKET) if now else None
    own = [thing.identifier for thing in things if thing.kind == "s3 bucket" and thing.outcome != KEPT]
    if data and data not in own and data not in [each.bucket for each in kept]:
        kept.append(_kept(account, data, "it was there before the deployment"))
    holding = {bucket: found for bucket in own if (found := _models(account, bucket))}
    bucket = next(iter(holding), None)
    return Farewell(
        stack=f"{described['StackName']}, {described['StackStatus']}, owner {now.owner}, topology {now.topology}"
        if described and now
        else None,
        things=things,
        running=_running(now),
        rate=now.rate if now else None,
        guard=now.guard if now else None,
        kept=kept,
        lost=holding[bucket] if bucket else [],
        lost_bucket=bucket,
        elsewhere=None if described or things else Claim(account, deployment).elsewhere,
    )


def _models(account: Account, bucket: str) -> list[str]:
    try:
        return fetch.models(account.client("s3"), bucket)
    except (ClientError, ShoalError):  # nobody may read it, or it went meanwhile
        return []


def _running(now: status.Status | None) -> list[str]:
    if now is None:
        return []
    said = [f"{group.running} {group.instance_type} ({group.name})" for group in now.groups if group.running]
    if now.cluster and now.cluster.nodes:
        said.append(f"EMR cluster {now.cluster.identifier} ({now.cluster.state}, nodes: {len(now.cluster.nodes)})")
    return said


def _kept(account: Account, bucket: str, why: str) -> Kept:
    count, size = 0, 0
    try:
        for each in account.items("s3", "list_object_versions", "Versions", Bucket=bucket):
            count, size = count + 1, size + each["Size"]
    except ClientError as error:
        why = f"{why}; its content cannot be listed: {error.response['Error'].get('Message', '')}"
    try:
        price = catalog.prices(account.region).other.s3_gib_month
    except TopologyError:
        return Kept(bucket=bucket, objects=count, bytes=size, monthly=None, why=why)
    return Kept(bucket=bucket, objects=count, bytes=size, monthly=size / _GIB * price, why=why)
