"""Why a deployment failed, and what becomes of what it had made.

A first deployment is made without CloudFormation's own rollback, which would delete the logs that tell why before
anybody has read them; so it is taken back here, after they were shown. The one thing that is easy to get wrong is to
take back what somebody uses: only a stack whose creation has failed, and has come to rest.
"""

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.aws import objects
from bootstrap.aws.account import Account
from bootstrap.aws.objects import Place
from bootstrap.aws.ownership import reason_of
from bootstrap.aws.stacks import Event, Stack
from bootstrap.errors import ShoalError
from bootstrap.progress import Bars
from bootstrap.removal import teardown

LOG_SECONDS = 360.0
"""EMR brings a node's logs to their bucket every five minutes."""
_LOOK_SECONDS = 5.0
_LINES = 20
_TERMINATED = ["TERMINATING", "TERMINATED", "TERMINATED_WITH_ERRORS"]
_BOOT_FAILED = "BOOTSTRAP_FAILURE"
_CREATION_FAILED = "CREATE_FAILED"


def explain(deployment: str, happened: Sequence[Event], log: Path) -> str | None:
    """The first resource that failed of itself; None where CloudFormation has not come that far."""
    for event in happened:
        reason = event.get("ResourceStatusReason", "")
        if event["ResourceStatus"].endswith("_FAILED") and "cancelled" not in reason:
            return (
                f"the deployment '{deployment}' failed at {event['LogicalResourceId']} ({event['ResourceType']}): "
                f"{reason.rstrip('.')} (the CDK's log: {log})"
            )
    return None


def clean_up(deployment: str, account: Account, stack: Stack | None, *, bars: Bars, say: Callable[[str], None]) -> str:
    """Show what a stack's nodes said, and take it back if its creation failed; returns what is left, as a sentence."""
    if stack is None or stack["StackStatus"].endswith("ROLLBACK_COMPLETE"):
        return "CloudFormation has taken everything back; mend the cause and deploy again"
    if stack["StackStatus"].endswith("_IN_PROGRESS"):
        return f"CloudFormation goes on with it ({stack['StackStatus']}); look at it by: shoal status {deployment}"
    remaining = f"What was made is still there ({stack['StackStatus']}); end it by: shoal destroy {deployment}"
    if stack["StackStatus"] != _CREATION_FAILED:
        return remaining
    try:
        try:
            lines = first_boot(account, stack, bars=bars)
        except (BotoCoreError, ClientError) as error:
            lines = [f"whether a node's first boot failed, and why, cannot be read: {reason_of(error)}"]
        for line in lines:
            say(line)
        destroyed = teardown.destroy(deployment, account, bars=bars, say=say)
    except (BotoCoreError, ClientError) as error:
        return f"{remaining} ({reason_of(error)})"
    except ShoalError as error:
        return f"{remaining} ({error})"
    except KeyboardInterrupt:
        say(f"interrupted; {remaining}")
        raise
    if destroyed.proven:
        return "What was made has been deleted again; mend the cause and deploy again"
    return f"What was made has been deleted, but not all of it was seen to go; look by: shoal destroy {deployment}"


def first_boot(account: Account, stack: Stack, *, bars: Bars, seconds: float = LOG_SECONDS) -> list[str]:
    """What a node of the stack's EMR cluster said when its first boot failed, as lines; none where none has.

    Waits so long for the log. Raises what AWS answers.
    """
    cluster = _failed_cluster(account, stack["StackName"], stack["CreationTime"])
    if cluster is None:
        return []
    parts = urlsplit(cluster["LogUri"])
    nodes = Place(parts.netloc, f"{parts.path.strip('/')}/{cluster['Id']}/node/".lstrip("/"))
    bars.stage("wait for the node's log", 0)
    end = time.monotonic() + seconds
    while not (found := _logs(account, nodes)):
        if time.monotonic() > end:
            return [f"the first boot of an EMR node failed; its log did not come to {nodes} in {seconds:.0f} seconds"]
        bars.tick()
        time.sleep(_LOOK_SECONDS)
    log, text = next(iter(found.items()))
    return [f"the first boot of an EMR node failed; the end of what it said ({log}):", *text.splitlines()[-_LINES:]]


def _failed_cluster(account: Account, name: str, since: datetime) -> dict[str, str] | None:
    """The newest cluster of that name whose bootstrap action failed."""
    emr = account.client("emr")
    for each in account.items("emr", "list_clusters", "Clusters", ClusterStates=_TERMINATED, CreatedAfter=since):
        if each["Name"] == name and each["Status"].get("StateChangeReason", {}).get("Code") == _BOOT_FAILED:
            found: dict[str, str] = emr.describe_cluster(ClusterId=each["Id"])["Cluster"]
            return found if found.get("LogUri") else None
    return None


def _logs(account: Account, nodes: Place) -> dict[Place, str]:
    """What the bootstrap actions of all nodes wrote to their standard error; those that wrote nothing are not there."""
    s3 = account.client("s3")
    places = [Place(nodes.bucket, key) for key in sorted(objects.sizes(s3, nodes)) if _is_log(key)]
    return {place: text for place in places if (text := objects.unpacked(objects.read_from(s3, place, 0)))}


def _is_log(key: str) -> bool:
    *_, actions, _number, file = ("", "", *key.split("/"))
    return actions == "bootstrap-actions" and file == "stderr.gz"
