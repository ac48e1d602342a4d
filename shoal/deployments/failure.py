"""Explanation of failed deployments, and deletion of the resources of a failed creation.

A first deployment runs without CloudFormation's rollback, which would delete the logs before anybody can read them.
This module therefore shows the logs and then deletes the stack. It only deletes a stack in the state CREATE_FAILED,
because any other stack might be in use.
"""

import re
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from common.errors import ShoalError
from common.progress import reporter
from corpus.reading.s3 import S3Path
from shoal.aws import clusters, objects
from shoal.aws.account import Account, reason_of
from shoal.aws.stacks import Event, Stack
from shoal.deployments.removal import teardown

LOG_SECONDS = 360.0
"""Seconds to wait for a node's log, which EMR uploads every five minutes."""
_LOOK_SECONDS = 5.0
_LINES = 20

_BOOT_FAILED = "BOOTSTRAP_FAILURE"
_CREATION_FAILED = "CREATE_FAILED"
_LOG = re.compile("(^|/)bootstrap-actions/[^/]*/stderr[.]gz$")


def explain(deployment: str, happened: Sequence[Event], log: Path) -> str | None:
    """Return a message about the first resource that failed, or None if no resource failed. Cancelled resources do not
    count as failed."""
    for event in happened:
        reason = event.get("ResourceStatusReason", "")
        if event["ResourceStatus"].endswith("_FAILED") and "cancelled" not in reason:
            return (
                f"the deployment '{deployment}' failed at {event['LogicalResourceId']} ({event['ResourceType']}): "
                f"{reason.rstrip('.')} (the CDK's log: {log})"
            )
    return None


def clean_up(deployment: str, account: Account, stack: Stack | None) -> str:
    """If the creation of a stack failed, show the logs of the stack's nodes and delete the stack. Return a message
    about the stack's state."""
    if stack is None or stack["StackStatus"].endswith("ROLLBACK_COMPLETE"):
        return "CloudFormation rolled everything back; correct the cause and deploy again"
    if stack["StackStatus"].endswith("_IN_PROGRESS"):
        state = stack["StackStatus"]
        return f"CloudFormation still changes the stack ({state}); to see its state: shoal status {deployment}"
    if stack["StackStatus"] != _CREATION_FAILED:
        return _remaining(deployment, stack)
    try:
        for line in _boot_log(account, stack):
            reporter().note(line)
        destroyed = teardown.destroy(deployment, account)
    except (BotoCoreError, ClientError) as error:
        return _remaining(deployment, stack, reason_of(error))
    except ShoalError as error:
        return _remaining(deployment, stack, str(error))
    if destroyed.proven:
        return "Shoal deleted all created resources; correct the cause and deploy again"
    if destroyed.costs:
        return f"Shoal could not delete all created resources; to delete the rest: shoal destroy {deployment}"
    return f"Shoal deleted the created resources, but could not check all of them; to check: shoal destroy {deployment}"


def _boot_log(account: Account, stack: Stack) -> list[str]:
    """Return the lines of `first_boot`, or one line with the reason why the log is unreadable."""
    try:
        return first_boot(account, stack)
    except (BotoCoreError, ClientError) as error:
        return [f"Shoal cannot read the log of the nodes' first boot: {reason_of(error)}"]


def _remaining(deployment: str, stack: Stack, reason: str = "") -> str:
    """Return the message about a stack that still exists. `reason` is the reason why its deletion failed, or empty if
    there was no deletion."""
    failed = f"The deletion of the created resources failed: {reason.rstrip('.')}. " if reason else ""
    again = f"to delete them: shoal destroy {deployment}"
    return f"{failed}The created resources still exist ({stack['StackStatus']}); {again}"


def first_boot(account: Account, stack: Stack, *, seconds: float = LOG_SECONDS) -> list[str]:
    """Return the log of a node of the stack's EMR cluster on which the first boot failed. If no first boot failed,
    return no lines.

    Waits up to `seconds` for the log. Raises botocore's errors.
    """
    cluster = _failed_cluster(account, stack["StackName"], stack["CreationTime"])
    if cluster is None:
        return []
    parts = urlsplit(cluster["LogUri"])
    nodes = S3Path(parts.netloc, f"{parts.path.strip('/')}/{cluster['Id']}/node/".lstrip("/"))
    reporter().stage("wait for the node's log")
    end = time.monotonic() + seconds
    while not (logs := _logs(account, nodes)):
        if time.monotonic() > end:
            return [
                f"the first boot of an EMR node failed, and its log did not arrive within {seconds:.0f} seconds; look "
                f"for it later in {nodes}"
            ]
        reporter().tick()
        time.sleep(_LOOK_SECONDS)
    log, text = next(iter(logs.items()))
    return [f"the first boot of an EMR node failed; the end of its log ({log}):", *text.splitlines()[-_LINES:]]


def _failed_cluster(account: Account, name: str, since: datetime) -> dict[str, str] | None:
    """Return the newest EMR cluster with this name that was created after `since` and failed in a bootstrap action.
    Return None if no such cluster exists or it writes no logs."""
    emr = account.client("emr")
    ended = list(clusters.ENDED)
    for each in account.items("emr", "list_clusters", "Clusters", ClusterStates=ended, CreatedAfter=since):
        if each["Name"] == name and each["Status"].get("StateChangeReason", {}).get("Code") == _BOOT_FAILED:
            cluster: dict[str, str] = emr.describe_cluster(ClusterId=each["Id"])["Cluster"]
            return cluster if cluster.get("LogUri") else None
    return None


def _logs(account: Account, nodes: S3Path) -> dict[S3Path, str]:
    """Return a mapping from log address to the standard error of a node's bootstrap action, for all nodes. Empty logs
    are left out."""
    s3 = account.client("s3")
    keys = [key for key in sorted(objects.sizes(s3, nodes)) if _LOG.search(key)]
    places = [S3Path(nodes.bucket, key) for key in keys]
    return {place: text for place in places if (text := objects.log_tail(s3, place))}
