"""Preview of the deletion of a deployment: the resources to delete, the buckets to keep, and the runs that were not
fetched.

A data bucket that existed before the deployment is kept. It does not have the deployment's tags, so only the stack's
outputs name it. A resource that the user is not allowed to read does not prevent the deletion, and is named in `notes`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from common import names
from common.errors import ShoalError
from infra import topology
from shoal.aws import fetched, stacks
from shoal.aws.account import Account, reason_of
from shoal.aws.deployment import Deployment, deleted_stacks
from shoal.aws.guard import GuardReport
from shoal.backends.attaching import listed_trainings
from shoal.deployments import status
from shoal.deployments.kept import KeptBucket, kept_bucket, measure_kept
from shoal.deployments.removal.ownership import Ownership
from shoal.deployments.removal.sweep import KEPT, UNVERIFIED, FoundResource, find_resources


@dataclass(frozen=True, kw_only=True)
class DestroyPreview:
    """State of a deployment before its deletion. `unfetched` lists the runs in `bucket` that were not completely
    fetched."""

    stack: str | None
    things: Sequence[FoundResource]
    running: list[str]
    trains: list[str] | None
    """Names of the training runs that are active or waiting, except those that are stopping. None if Shoal cannot read
    them."""
    rate: float | None
    guard: GuardReport | None
    kept: list[KeptBucket]
    unfetched: list[str]
    bucket: str | None
    unknown: bool = False
    """True if the region contains no resource of the deployment, because the deployment is in a different region or
    never existed."""
    notes: list[str]
    """Messages about unreadable resources and invalid parameters of the guard."""

    @property
    def deleted(self) -> list[FoundResource]:
        return [thing for thing in self.things if thing.outcome not in (KEPT, UNVERIFIED)]

    @property
    def loses_runs(self) -> bool:
        """True if the deletion also deletes the runs in `unfetched`."""
        return self.bucket is not None and all(kept.bucket != self.bucket for kept in self.kept)

    @property
    def is_empty(self) -> bool:
        """True if the preview found nothing to delete."""
        return self.stack is None and all(thing.outcome == KEPT for thing in self.things)


def preview(deployment: str, account: Account) -> DestroyPreview:
    """Return the preview, without deleting anything. Raises botocore's error if AWS refuses to describe the stack."""
    described = stacks.describe(account.client("cloudformation"), topology.stack_name(deployment))
    things, notes = find_resources(deployment, account), list[str]()
    now = _read_status(deployment, account, notes) if described else None
    keeping = measure_kept(account, things)
    buckets = [thing for thing in things if thing.kind == "s3 bucket"]
    bucket_names = [thing.identifier for thing in buckets if thing.outcome != UNVERIFIED]
    data = stacks.outputs(described).get(names.OUTPUT_DATA_BUCKET) if described else None
    if data and data not in bucket_names:
        if any(thing.outcome == UNVERIFIED for thing in buckets):
            bucket_names.append(data)
            notes.append(f"Shoal cannot tell whether s3://{data} will be kept")
        elif _exists(account, data):
            keeping.append(kept_bucket(account, data, "it existed before the deployment"))
    kept_runs = {thing.identifier: thing.runs for thing in buckets if thing.outcome == KEPT}
    holding = {
        each: kept_runs[each] if each in kept_runs else _unfetched(account, each, notes) for each in bucket_names
    }
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
        and bool(Ownership(account, deployment).elsewhere or not (things or deleted_stacks(account, deployment))),
        notes=notes,
    )


def _read_status(deployment: str, account: Account, notes: list[str]) -> status.Status | None:
    try:
        return status.read_status(deployment, account)
    except (BotoCoreError, ClientError, ShoalError) as error:
        notes.append(f"Shoal cannot read the running resources and their cost: {error}")
        return None


def _trains(
    deployment: str, account: Account, stack: stacks.Stack, now: status.Status | None, notes: list[str]
) -> list[str] | None:
    outputs = stacks.outputs(stack)
    has_nodes = now is None or now.jobs or any(group.desired or group.running for group in now.groups)
    if not (has_nodes and names.OUTPUT_DATA_BUCKET in outputs):
        return []
    running = Deployment(name=deployment, topology="", session=account.session, outputs=outputs)
    try:
        return [each.name for each in listed_trainings(running) if not (each.state.is_stopping or each.state.has_ended)]
    except (BotoCoreError, ClientError, ShoalError) as error:
        notes.append(f"Shoal cannot read which training runs are active: {error}")
        return None


def _exists(account: Account, bucket: str) -> bool:
    """Return False only if a bucket certainly does not exist. An earlier, failed deletion of the stack can have deleted
    the bucket."""
    try:
        account.client("s3").head_bucket(Bucket=bucket)
    except ClientError as error:
        return error.response["Error"]["Code"] != "404"
    return True


def _unfetched(account: Account, bucket: str, notes: list[str]) -> list[str]:
    try:
        return fetched.unfetched(account.client("s3"), bucket)
    except (BotoCoreError, ClientError) as error:
        notes.append(f"Shoal cannot read which runs in s3://{bucket} were fetched: {reason_of(error)}")
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
