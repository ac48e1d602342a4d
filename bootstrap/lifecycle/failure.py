"""Explains why a deployment failed, and deletes what it had created.

A first deployment runs without CloudFormation's rollback, which would delete the logs before anybody has read them. So
the stack is deleted here, after the logs were shown. Delete only a stack whose creation has failed and has ended:
somebody may be using any other stack.
"""

import re
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError
from shoal_guard.errors import SweepError
from shoal_guard.sweep.account import reason_of

from bootstrap.aws import clusters, objects
from bootstrap.aws.account import Account
from bootstrap.aws.stacks import Event, Stack
from bootstrap.progress import Bars
from bootstrap.removal import teardown
from common.errors import ShoalError
from corpus.reading.s3 import S3Path, read_from

LOG_SECONDS = 360.0
"""EMR uploads a node's logs every five minutes."""
_LOOK_SECONDS = 5.0
_LINES = 20

_BOOT_FAILED = "BOOTSTRAP_FAILURE"
_CREATION_FAILED = "CREATE_FAILED"
_LOG = re.compile("(^|/)bootstrap-actions/[^/]*/stderr[.]gz$")


def explain(deployment: str, happened: Sequence[Event], log: Path) -> str | None:
    """The first resource that failed, without those cancelled because of it; None without any."""
    for event in happened:
        reason = event.get("ResourceStatusReason", "")
        if event["ResourceStatus"].endswith("_FAILED") and "cancelled" not in reason:
            return (
                f"the deployment '{deployment}' failed at {event['LogicalResourceId']} ({event['ResourceType']}): "
                f"{reason.rstrip('.')} (the CDK's log: {log})"
            )
    return None


def clean_up(deployment: str, account: Account, stack: Stack | None, *, bars: Bars, say: Callable[[str], None]) -> str:
    """Show the logs of a stack's nodes, and delete it if its creation failed; returns what is left, as a sentence."""
    if stack is None or stack["StackStatus"].endswith("ROLLBACK_COMPLETE"):
        return "CloudFormation has rolled everything back; correct the cause and deploy again"
    if stack["StackStatus"].endswith("_IN_PROGRESS"):
        return f"CloudFormation continues with it ({stack['StackStatus']}); see its state by: shoal status {deployment}"
    if stack["StackStatus"] != _CREATION_FAILED:
        return _remaining(deployment, stack)
    try:
        for line in _boot_log(account, stack, bars):
            say(line)
        destroyed = teardown.destroy(deployment, account, bars=bars, say=say)
    except (BotoCoreError, ClientError) as error:
        return _remaining(deployment, stack, reason_of(error))
    except (ShoalError, SweepError) as error:
        return _remaining(deployment, stack, str(error))
    except KeyboardInterrupt:
        say(f"interrupted. {_remaining(deployment, stack)}")
        raise
    if destroyed.proven:
        return "What was created has been deleted; correct the cause and deploy again"
    if destroyed.costs:
        return f"Not all of what was created could be deleted; delete the rest by: shoal destroy {deployment}"
    return f"What was created has been deleted, but not all of it was checked; check it by: shoal destroy {deployment}"


def _boot_log(account: Account, stack: Stack, bars: Bars) -> list[str]:
    """The lines of `first_boot`, or why there are none."""
    try:
        return first_boot(account, stack, bars=bars)
    except (BotoCoreError, ClientError) as error:
        return [f"the log of the nodes' first boot cannot be read: {reason_of(error)}"]


def _remaining(deployment: str, stack: Stack, reason: str = "") -> str:
    """The sentence about a stack that was not deleted; `reason` is why its deletion failed."""
    failed = f"The deletion of what was created failed: {reason.rstrip('.')}. " if reason else ""
    return f"{failed}What was created still exists ({stack['StackStatus']}); delete it by: shoal destroy {deployment}"


def first_boot(account: Account, stack: Stack, *, bars: Bars, seconds: float = LOG_SECONDS) -> list[str]:
    """The log of a node of the stack's EMR cluster whose first boot failed, as lines; none where none failed.

    Waits up to `seconds` for the log. Raises AWS's errors.
    """
    cluster = _failed_cluster(account, stack["StackName"], stack["CreationTime"])
    if cluster is None:
        return []
    parts = urlsplit(cluster["LogUri"])
    nodes = S3Path(parts.netloc, f"{parts.path.strip('/')}/{cluster['Id']}/node/".lstrip("/"))
    bars.stage("wait for the node's log", 0)
    end = time.monotonic() + seconds
    while not (found := _logs(account, nodes)):
        if time.monotonic() > end:
            return [
                f"the first boot of an EMR node failed, and its log did not arrive within {seconds:.0f} seconds; look "
                f"for it later in {nodes}"
            ]
        bars.tick()
        time.sleep(_LOOK_SECONDS)
    log, text = next(iter(found.items()))
    return [f"the first boot of an EMR node failed; the end of its log ({log}):", *text.splitlines()[-_LINES:]]


def _failed_cluster(account: Account, name: str, since: datetime) -> dict[str, str] | None:
    """The newest cluster of this name whose bootstrap action failed."""
    emr = account.client("emr")
    ended = list(clusters.ENDED)
    for each in account.items("emr", "list_clusters", "Clusters", ClusterStates=ended, CreatedAfter=since):
        if each["Name"] == name and each["Status"].get("StateChangeReason", {}).get("Code") == _BOOT_FAILED:
            found: dict[str, str] = emr.describe_cluster(ClusterId=each["Id"])["Cluster"]
            return found if found.get("LogUri") else None
    return None


def _logs(account: Account, nodes: S3Path) -> dict[S3Path, str]:
    """The standard error of the bootstrap actions of all nodes, without empty ones."""
    s3 = account.client("s3")
    keys = [key for key in sorted(objects.sizes(s3, nodes)) if _LOG.search(key)]
    places = [S3Path(nodes.bucket, key) for key in keys]
    return {place: text for place in places if (text := objects.log_tail(read_from(s3, place, 0)))}
