"""Lambda handler of the guard: observes a deployment and carries out the actions that `rules` decides.

AWS runs it every five minutes. One failing service must not prevent the guard from using the other services. So each
read and each action may fail separately. An unreadable node or cluster counts as busy.
"""

import json
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, TypeVar
from uuid import uuid4

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from .metrics import dollars_by_use, idle_values
from .observation import BOOT, METAL_BOOT, Observation, ObservedCluster, ObservedJob, ObservedMachine, ObservedNode
from .parameters import read_account, read_extension, write_account
from .rules import Action, GuardSettings, GuardState, decide

_DELETED_STATUSES = ("DELETE_IN_PROGRESS", "DELETE_COMPLETE", "REVIEW_IN_PROGRESS")
_ENDED_STATES = ("TERMINATING", "TERMINATED", "TERMINATED_WITH_ERRORS")
_BILLED_STATES = ("PROVISIONING", "BOOTSTRAPPING", "RUNNING")
# Keep timeouts short, so that a service that does not answer leaves time for the other services. The next round calls
# it again.
_CLIENT_CONFIG = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard", "max_attempts": 3})
_MOST_BYTES = 1 << 20
_UNKNOWN_EXTENSION = 1.0
"""Extension in hours that the guard assumes while it can read the true value neither from Systems Manager nor from the
copy. It delays the end of life, but does not remove it."""
_RUN = re.compile(r"[A-Za-z0-9-]{1,40}\.[0-9]{8}T[0-9]{6}-[0-9a-f]{4}")
_UNBILLED_STATUSES = ("Pending", "Starting")
"""Secondary statuses of a training job that AWS does not bill yet. A spot job may wait for hours."""
_JOB = "-[0-9]{12}(-[0-9]{1,2})?"
_logger = logging.getLogger(__name__)
_logger.setLevel(logging.INFO)
Found = TypeVar("Found")


class GuardRoundError(Exception):
    """Some reads or actions of a round failed. The round completed all other reads and actions."""


class Round:
    """One round of the guard. Its reads and actions may fail separately, and it collects their failures."""

    def __init__(self) -> None:
        self.failures: list[str] = []

    def attempt(self, what: Callable[[], Found], otherwise: Found) -> Found:
        """Return the result of `what()`. If the call fails, record the failure and return `otherwise`."""
        try:
            return what()
        except Exception as error:
            self.failures.append(f"{type(error).__name__}: {error}")
            return otherwise


def handler(event: dict[str, Any], context: object) -> None:
    """Run one round of the guard, at the `time` of EventBridge's event.

    Raises GuardRoundError at the end if anything failed, so that AWS counts an error and repeats the round.
    """
    del context
    logging.basicConfig(format="%(message)s")  # has no effect on Lambda, which installs a handler
    settings = GuardSettings(**json.loads(os.environ["SETTINGS"]))
    now = datetime.fromisoformat(event["time"]) if "time" in event else datetime.now(UTC)
    created = _created(settings)
    if created is None:
        return
    guard_round = Round()
    account, extension = _read_stored(settings, now, created, guard_round)
    observed = _observe(settings, now, guard_round, created, _UNKNOWN_EXTENSION if extension is None else extension)
    after, actions = decide(settings, now, account, observed)
    # Keep this order: send warnings, store the state, then delete. An interrupted round may send a warning twice. But
    # it never deletes without a warning, and it writes nothing after the stack's deletion has started.
    for action in actions:
        if action.kind == "notify":
            guard_round.attempt(partial(_notify, settings, action), None)
    if after is not None and after != account:
        if extension is not None:  # otherwise it was unreadable, and may contain a higher amount than `after`
            guard_round.attempt(partial(_store_account, settings, after), None)
        if settings.copy:
            _logger.info("$%.2f spent by %s, $%.2f an hour now", after.spent, now.isoformat(), after.rate)
            guard_round.attempt(partial(_copy, settings, after, extension), None)
    for action in actions:
        _logger.info("%s %s %s", action.kind, action.subject, action.text)
        if action.kind != "notify":
            guard_round.attempt(partial(_ACTIONS[action.kind], *filter(None, (action.subject, action.text))), None)
    if guard_round.failures:
        raise GuardRoundError("; ".join(guard_round.failures))


# Reads


def _created(settings: GuardSettings) -> datetime | None:
    """Return the creation time of the stack, or None if the stack does not exist or is being deleted."""
    try:
        (stack,) = _client("cloudformation").describe_stacks(StackName=settings.stack)["Stacks"]
    except ClientError as error:
        if "does not exist" in error.response["Error"]["Message"]:
            return None
        raise
    created: datetime = stack["CreationTime"]
    return None if stack["StackStatus"] in _DELETED_STATUSES else created


def _read_stored(
    settings: GuardSettings, now: datetime, created: datetime, guard_round: Round
) -> tuple[GuardState | None, float | None]:
    """Return the guard's state and the extension in hours, from the parameters or their copy; None for unknown values.

    A value that is invalid or older than the stack counts as missing. If parameter and copy have different states, the
    state with the higher amount spent is used, because writing the other one may have failed. The copy of the extension
    is used only while Systems Manager does not answer.
    """
    names = [settings.account, settings.extension]
    found = guard_round.attempt(lambda: _client("ssm").get_parameters(Names=names)["Parameters"], None)
    texts: dict[str, Mapping[str, Any]] = {}
    if found is not None:
        texts["parameter"] = {each["Name"]: each["Value"] for each in found if each["LastModifiedDate"] >= created}
    if settings.copy:
        copied = guard_round.attempt(lambda: _read(settings.bucket, settings.copy, created) or {}, None)
        texts |= {} if copied is None else {"copy of the parameter": copied}
    if not texts:
        return None, None

    def parsed(source: str, name: str, read: Callable[[str], Found], otherwise: Found) -> Found:
        try:
            return read(str(texts[source][name])) if name in texts[source] else otherwise
        except ValueError as error:
            guard_round.failures.append(f"the {source} {name} {error}, and is ignored: {texts[source][name]!r}")
            return otherwise

    accounts = [parsed(source, settings.account, partial(read_account, now=now), GuardState()) for source in texts]
    account = max(accounts, key=lambda each: (each.spent, each.as_of or created))
    unread = None if found is None else 0.0
    return account, parsed(next(iter(texts)), settings.extension, read_extension, unread)


def _store_account(settings: GuardSettings, account: GuardState) -> None:
    text = write_account(account)
    _client("ssm").put_parameter(Name=settings.account, Value=text, Type="String", Overwrite=True)


def _copy(settings: GuardSettings, account: GuardState, extension: float | None) -> None:
    """Copy the guard's state and the extension to the data bucket, so that the guard works while Systems Manager fails.

    Write nothing while the stack is being deleted, because the deletion empties the bucket.
    """
    if _created(settings) is None:
        return
    hours = {} if extension is None else {settings.extension: extension}
    body = json.dumps({settings.account: write_account(account), **hours}).encode()
    _client("s3").put_object(Bucket=settings.bucket, Key=settings.copy, Body=body)


def _observe(
    settings: GuardSettings, now: datetime, guard_round: Round, created: datetime, extension: float
) -> Observation:
    no_resources: list[tuple[str, str]] = []
    resources = guard_round.attempt(partial(_resources, settings), no_resources)
    names = [name for kind, name in resources if kind == "AWS::AutoScaling::AutoScalingGroup"]
    clusters = [name for kind, name in resources if kind == "AWS::EMR::Cluster"]
    single_instances = [name for kind, name in resources if kind == "AWS::EC2::Instance"]
    no_groups: dict[str, bool] = {}
    groups = guard_round.attempt(partial(_groups_with_nodes, settings, names), no_groups)
    may_run = groups or guard_round.failures  # unreadable groups may have nodes
    ended_run, is_active = guard_round.attempt(partial(_runs, settings), ("", True)) if may_run else ("", False)
    nodes = partial(_nodes, settings, now, guard_round, names, single_instances)
    observations = [guard_round.attempt(partial(_cluster, settings, now, identifier), None) for identifier in clusters]
    return Observation(
        created=created,
        extension=extension,
        groups=list(groups),
        persistent_groups=[name for name, is_persistent in groups.items() if is_persistent],
        ended_run=ended_run,
        run_is_active=is_active,
        nodes=guard_round.attempt(nodes, []) if settings.bucket else [],
        clusters=[cluster for cluster in observations if cluster],
        jobs=guard_round.attempt(partial(_jobs, settings), []) if settings.jobs else [],
        by_use=guard_round.attempt(
            lambda: dollars_by_use(_client("cloudwatch"), settings, resources, created, now), 0.0
        ),
        complete=not guard_round.failures,
    )


def _resources(settings: GuardSettings) -> list[tuple[str, str]]:
    """Return the types and names of all resources of the stack. DescribeStackResources would return only 100."""
    pages = _client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=settings.stack)
    return [
        (resource["ResourceType"], resource["PhysicalResourceId"])
        for page in pages
        for resource in page["StackResourceSummaries"]
        if resource.get("PhysicalResourceId") and resource["ResourceStatus"] != "DELETE_COMPLETE"
    ]


def _groups_with_nodes(settings: GuardSettings, groups: Sequence[str]) -> dict[str, bool]:
    """Return the groups with a desired capacity above 0, each with True if it keeps its nodes between runs."""
    if not groups:  # without names AWS would return the groups of the whole account
        return {}
    pages = _client("autoscaling").get_paginator("describe_auto_scaling_groups").paginate(AutoScalingGroupNames=groups)
    return {
        group["AutoScalingGroupName"]: any(
            (tag["Key"], tag.get("Value")) == (settings.start_tag, "deploy") for tag in group.get("Tags", ())
        )
        for page in pages
        for group in page["AutoScalingGroups"]
        if group["DesiredCapacity"] or group["MinSize"]
    }


def _runs(settings: GuardSettings) -> tuple[str, bool]:
    """Return the name of the last run, and whether a run is active.

    The name is empty if a run is active or keeps its nodes. A run with an unreadable end counts as active. An attacker
    on a node could fake the end of a run, but would only terminate the nodes.
    """
    if not settings.bucket:
        return "", False
    runs = (_read(settings.bucket, settings.requests) or {}).get("runs")
    last, keeps, running = "", False, False
    for each in runs if isinstance(runs, list) else ():
        if not isinstance(each, dict) or not _RUN.fullmatch(str(each.get("run"))):
            return "", False  # agents ignore an invalid request
        last, keeps = str(each["run"]), keeps or bool(each.get("keep"))
        ended = _read(settings.bucket, f"runs/{last}/ended.json") or {}
        running = running or ended.get("token") != each.get("token")
    return ("" if keeps or running else last), running


def _read(bucket: str, key: str, since: datetime | None = None) -> dict[str, Any] | None:
    """Return a JSON document of the data bucket, or None if it is missing, broken, or older than `since`.

    The key is listed first, because without permission to list the whole bucket, S3 answers 403 for a missing key.
    """
    s3 = _client("s3")
    listed = s3.list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1).get("Contents", ())
    if all(each["Key"] != key or (since and each["LastModified"] < since) for each in listed):
        return None
    with s3.get_object(Bucket=bucket, Key=key)["Body"] as body:
        try:
            found = json.loads(body.read(_MOST_BYTES))
        except (ValueError, RecursionError):
            return None
    return found if isinstance(found, dict) else None


def _nodes(
    settings: GuardSettings, now: datetime, guard_round: Round, groups: Sequence[str], single_instances: Sequence[str]
) -> list[ObservedNode]:
    """Return the instances of the auto scaling groups, and the stack's instances that belong to no group."""
    pages = _client("ec2").get_paginator("describe_instances")
    living = {"Name": "instance-state-name", "Values": ["pending", "running"]}
    instances = [
        each
        for name, values in (("tag:aws:autoscaling:groupName", groups), ("instance-id", single_instances))
        if values  # EC2 refuses an empty filter
        for page in pages.paginate(Filters=[{"Name": name, "Values": values}, living])
        for found in page["Reservations"]
        for each in found["Instances"]
    ]
    current_reports = {each["InstanceId"]: now for each in instances}
    reports = guard_round.attempt(partial(_last_reports, settings), current_reports) if instances else {}
    return [
        ObservedNode(
            price=settings.gpu.get(each["InstanceType"], 0.0),
            since=each["LaunchTime"],
            last_report=reports.get(each["InstanceId"]),
            boot=METAL_BOOT if ".metal" in each["InstanceType"] else BOOT,
        )
        for each in instances
    ]


def _last_reports(settings: GuardSettings) -> dict[str, datetime]:
    """Return the time of each node's last report of boot or work, by instance id, from the objects that nodes write."""
    found: dict[str, datetime] = {}
    pages = _client("s3").get_paginator("list_objects_v2")
    for page in pages.paginate(Bucket=settings.bucket, Prefix=settings.nodes_prefix):
        for each in page.get("Contents", ()):
            node = each["Key"].removeprefix(settings.nodes_prefix).partition(".")[0]
            found[node] = max(each["LastModified"], found.get(node, each["LastModified"]))
    return found


def _cluster(settings: GuardSettings, now: datetime, identifier: str) -> ObservedCluster | None:
    """Return the state of an EMR cluster, or None if it has terminated or is terminating."""
    emr = _client("emr")
    status = emr.describe_cluster(ClusterId=identifier)["Cluster"]["Status"]
    if status["State"] in _ENDED_STATES:
        return None
    created = status["Timeline"]["CreationDateTime"]
    nodes = emr.get_paginator("list_instances").paginate(ClusterId=identifier, InstanceStates=_BILLED_STATES)
    is_waiting = status["State"] == "WAITING"
    newest_steps = emr.list_steps(ClusterId=identifier)["Steps"]
    ends = [step["Status"]["Timeline"].get("EndDateTime", created) for step in newest_steps]
    return ObservedCluster(
        identifier=identifier,
        state=status["State"],
        idle_since=max([status["Timeline"].get("ReadyDateTime", created), *ends]),
        idle_values=idle_values(_client("cloudwatch"), settings, now, identifier) if is_waiting else (),
        machines=[
            ObservedMachine(
                price=settings.emr.get(node["InstanceType"], 0.0),
                since=node["Status"].get("Timeline", {}).get("CreationDateTime", created),
            )
            for page in nodes
            for node in page["Instances"]
        ],
    )


def _jobs(settings: GuardSettings) -> list[ObservedJob]:
    """Return the SageMaker training jobs that have a name of this deployment and have not ended."""
    named = re.compile(re.escape(settings.jobs) + _JOB)
    return [
        ObservedJob(
            name=each["TrainingJobName"],
            price=0.0 if each.get("SecondaryStatus") in _UNBILLED_STATUSES else settings.job,
            since=each["CreationTime"],
        )
        for status in ("InProgress", "Stopping")
        for page in _client("sagemaker")
        .get_paginator("list_training_jobs")
        .paginate(StatusEquals=status, NameContains=settings.jobs)
        for each in page["TrainingJobSummaries"]
        if named.fullmatch(each["TrainingJobName"])
    ]


# Actions


def _notify(settings: GuardSettings, action: Action) -> None:
    if settings.topic:
        _client("sns").publish(TopicArn=settings.topic, Subject=action.subject, Message=action.text)


def _stop_runs(key: str) -> None:
    """Request that all runs stop with a checkpoint. Fails if another writer changes the document at the same time."""
    bucket, s3 = GuardSettings(**json.loads(os.environ["SETTINGS"])).bucket, _client("s3")
    found = s3.get_object(Bucket=bucket, Key=key)
    with found["Body"] as body:
        queue = json.loads(body.read(_MOST_BYTES))
    if all(each["stop"] is True for each in queue["runs"]):
        return
    for each in queue["runs"]:
        each["stop"] = True
    s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(queue, indent=2).encode(), IfMatch=found["ETag"])


def _stop_job(name: str) -> None:
    """Ask a training job to write a checkpoint and stop. Do nothing if it has already ended."""
    try:
        _client("sagemaker").stop_training_job(TrainingJobName=name)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ValidationException":
            raise


def _scale_to_zero(group: str) -> None:
    """Set a group to zero nodes. UpdateAutoScalingGroup comes second, because it may need permission to start nodes."""
    scaling = _client("autoscaling")
    try:
        scaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=0)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ValidationError":
            raise
        # A user has set a minimum size, which Shoal never does.
        scaling.update_auto_scaling_group(AutoScalingGroupName=group, MinSize=0, DesiredCapacity=0)


@cache
def _client(service: str) -> Any:
    return boto3.client(service, config=_CLIENT_CONFIG)  # type: ignore[call-overload]


_ACTIONS: dict[str, Callable[..., None]] = {
    "stop": _stop_runs,
    "stop job": _stop_job,
    "scale to zero": _scale_to_zero,
    "terminate": lambda cluster: _client("emr").terminate_job_flows(JobFlowIds=[cluster]),
    # CloudFormation deletes with the role of the deployment, so the guard needs no permission to delete resources. The
    # events of the deletion show its token. AWS ignores a repeated token, so each deletion has its own.
    "delete": lambda stack, token: _client("cloudformation").delete_stack(
        StackName=stack, ClientRequestToken=f"{token}-{uuid4().hex[:8]}"
    ),
}
