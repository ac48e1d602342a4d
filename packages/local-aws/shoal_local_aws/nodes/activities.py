"""Records the scaling activities of an auto scaling group: launches, terminations and failures, the newest first."""

import json
import uuid
from typing import Any

from shoal_local_aws.seams import autoscaling, requests
from shoal_local_aws.service import Record, parameter

_KEPT = 200
# Rule: A page has at most 100 activities. Source: botocore autoscaling DescribeScalingActivities.
_PAGE = 100


def begin(group: Record, description: str, cause: str, *, zone: str, subnet: str, instance: str = "") -> Record:
    """Record the start of an activity of a group, and return the activity for `finish`."""
    activity = {
        "ActivityId": str(uuid.uuid4()),
        "AutoScalingGroupName": group["AutoScalingGroupName"],
        "AutoScalingGroupARN": group["AutoScalingGroupARN"],
        "Description": description,
        "Cause": f"At {requests.now()} {cause}",
        "StartTime": requests.now(),
        "StatusCode": "InProgress",
        "Progress": 30,
        "Details": json.dumps({"Subnet ID": subnet, "Availability Zone": zone}),
    }
    history = _history(group)
    history.insert(0, {"activity": activity, "instance": instance})
    del history[_KEPT:]
    return activity


def finish(activity: Record, status: str, message: str = "") -> None:
    """Record the end of an activity: `Successful`, or `Failed` with a reason."""
    activity.update(StatusCode=status, EndTime=requests.now(), Progress=100)
    if message:
        activity["StatusMessage"] = message


def launched(group: Record, instance: str) -> None:
    for entry in _history(group):
        if entry["instance"] == instance and entry["activity"]["StatusCode"] == "InProgress":
            finish(entry["activity"], "Successful")


def describe(parameters: Record) -> Any:
    """Return the response to a DescribeScalingActivities request."""
    name = parameter(parameters, "AutoScalingGroupName")
    # Belief: The activities of an unknown group are refused. Check: activities-of-unknown-group.
    if name and name not in autoscaling.groups:
        return autoscaling.error("ValidationError", f"AutoScalingGroup name not found - {name}")
    groups = [autoscaling.groups[name]] if name else list(autoscaling.groups.values())
    found = [entry["activity"] for group in groups for entry in _history(group)]
    begin = int(parameter(parameters, "NextToken") or 0)
    end = begin + int(parameter(parameters, "MaxRecords") or _PAGE)
    body = f"<Activities>{autoscaling.to_xml(found[begin:end])}</Activities>"
    if end < len(found):
        body += f"<NextToken>{end}</NextToken>"
    operation = "DescribeScalingActivities"
    return autoscaling.answer(200, f"{operation}Response", f"<{operation}Result>{body}</{operation}Result>")


def _history(group: Record) -> list[Record]:
    history: list[Record] = group.setdefault("Activities", [])
    return history
