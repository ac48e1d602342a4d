"""Records the scaling activities of an auto scaling group, the newest first."""

import uuid
from typing import Any

from shoal_local_aws.seams import autoscaling, requests
from shoal_local_aws.service import Record, parameter

_KEPT = 200
# Rule: A page has at most 100 activities. Source: botocore autoscaling DescribeScalingActivities.
_PAGE = 100


def note(group: Record, description: str, failure: str = "") -> None:
    """Record a launch or a termination of a group, which is successful unless `failure` gives a reason."""
    activity = {
        "ActivityId": str(uuid.uuid4()),
        "AutoScalingGroupName": group["AutoScalingGroupName"],
        "Description": description,
        "StartTime": requests.now(),
        "EndTime": requests.now(),
        "StatusCode": "Failed" if failure else "Successful",
        **({"StatusMessage": failure} if failure else {}),
    }
    group["Activities"] = [activity, *group.get("Activities", ())][:_KEPT]


def describe(parameters: Record) -> Any:
    """Return the response to a DescribeScalingActivities request."""
    name = parameter(parameters, "AutoScalingGroupName")
    # Belief: The activities of an unknown group are refused. Check: activities-of-unknown-group.
    if name and name not in autoscaling.groups:
        return autoscaling.error("ValidationError", f"AutoScalingGroup name not found - {name}")
    groups = [autoscaling.groups[name]] if name else list(autoscaling.groups.values())
    found = [activity for group in groups for activity in group.get("Activities", ())]
    begin = int(parameter(parameters, "NextToken") or 0)
    end = begin + int(parameter(parameters, "MaxRecords") or _PAGE)
    body = f"<Activities>{autoscaling.to_xml(found[begin:end])}</Activities>"
    if end < len(found):
        body += f"<NextToken>{end}</NextToken>"
    operation = "DescribeScalingActivities"
    return autoscaling.answer(200, f"{operation}Response", f"<{operation}Result>{body}</{operation}Result>")
