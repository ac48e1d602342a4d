"""The scaling activities of a group: what was started and ended, what failed and why; the newest first, as on AWS."""

import json
import uuid
from typing import Any

from ministack.core.responses import now_iso
from ministack.services import autoscaling

from embedded.service import Record

_KEPT = 200
_PAGE = 100


def begin(group: Record, description: str, cause: str, *, zone: str, subnet: str, instance: str = "") -> Record:
    """Note that something of a group begins; returns the activity, for `finish`."""
    activity = {
        "ActivityId": str(uuid.uuid4()),
        "AutoScalingGroupName": group["AutoScalingGroupName"],
        "AutoScalingGroupARN": group["AutoScalingGroupARN"],
        "Description": description,
        "Cause": f"At {now_iso()} {cause}",
        "StartTime": now_iso(),
        "StatusCode": "InProgress",
        "Progress": 30,
        "Details": json.dumps({"Subnet ID": subnet, "Availability Zone": zone}),
    }
    history = _history(group)
    history.insert(0, {"activity": activity, "instance": instance})
    del history[_KEPT:]
    return activity


def finish(activity: Record, status: str, message: str = "") -> None:
    """Note how an activity ended: `Successful`, or `Failed` with its reason."""
    activity.update(StatusCode=status, EndTime=now_iso(), Progress=100)
    if message:
        activity["StatusMessage"] = message


def launched(group: Record, instance: str) -> None:
    """The launch of an instance succeeded: it runs."""
    for entry in _history(group):
        if entry["instance"] == instance and entry["activity"]["StatusCode"] == "InProgress":
            finish(entry["activity"], "Successful")


def describe(parameters: Record) -> Any:
    """DescribeScalingActivities."""
    name = autoscaling._p(parameters, "AutoScalingGroupName")
    if name and name not in autoscaling._asgs:
        return autoscaling._error("ValidationError", f"AutoScalingGroup name not found - {name}")
    asked = autoscaling._parse_member_list(parameters, "ActivityIds")
    groups = [autoscaling._asgs[name]] if name else list(autoscaling._asgs.values())
    found = [entry["activity"] for group in groups for entry in _history(group)]
    found = [activity for activity in found if not asked or activity["ActivityId"] in asked]
    begin = int(autoscaling._p(parameters, "NextToken") or 0)
    end = begin + int(autoscaling._p(parameters, "MaxRecords") or _PAGE)
    body = f"<Activities>{autoscaling._member_xml(found[begin:end])}</Activities>"
    if end < len(found):
        body += f"<NextToken>{end}</NextToken>"
    operation = "DescribeScalingActivities"
    return autoscaling._xml(200, f"{operation}Response", f"<{operation}Result>{body}</{operation}Result>")


def _history(group: Record) -> list[Record]:
    history: list[Record] = group.setdefault("Activities", [])
    return history
