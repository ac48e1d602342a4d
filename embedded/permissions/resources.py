"""What a request is about, where ministack does not know it: resources that are named in lists, the tags of resources,
and roles that are passed to a service, for which `iam:PassRole` is asked, too."""

import json
from collections.abc import Callable, Iterator, Mapping

from embedded.permissions import identities
from embedded.seams import autoscaling, ec2, emr, identity, requests
from embedded.seams.lookup import Record

Asked = tuple[str, str, Record]
"""What is asked beside a request's own action: an action, a resource, condition keys."""

_LISTED: Mapping[str, tuple[tuple[str, ...], str]] = {
    "ssm": (("Names",), "parameter/{}"),
    "elasticmapreduce": (("ClusterId", "JobFlowId", "JobFlowIds", "ResourceId"), "cluster/{}"),
}
"""The fields of a JSON service's requests that name resources, and the end of their ARN."""
_KINDS = {
    "eni": "network-interface",
    "i": "instance",
    "igw": "internet-gateway",
    "lt": "launch-template",
    "nat": "natgateway",
    "rtb": "route-table",
    "sg": "security-group",
    "subnet": "subnet",
    "vol": "volume",
    "vpc": "vpc",
    "vpce": "vpc-endpoint",
}
"""The types of EC2's resources, by how their ids begin."""
_PASSED: Mapping[str, Mapping[str, str]] = {
    "CreateChangeSet": {"RoleARN": "cloudformation.amazonaws.com"},
    "CreateFlowLogs": {"DeliverLogsPermissionArn": "vpc-flow-logs.amazonaws.com"},
    "CreateStack": {"RoleARN": "cloudformation.amazonaws.com"},
    "DeleteStack": {"RoleARN": "cloudformation.amazonaws.com"},
    "RunJobFlow": {"JobFlowRole": "ec2.amazonaws.com", "ServiceRole": "elasticmapreduce.amazonaws.com"},
    "UpdateStack": {"RoleARN": "cloudformation.amazonaws.com"},
}
"""The fields of operations that pass a role, with the service that gets it."""


class Resource(str):
    """The ARN of a request's resource, with what else the request asks for."""

    also: tuple[Asked, ...] = ()


def install() -> None:
    """Complete what ministack knows of a request's resources."""
    identity.resource.wrap(_completed)
    identity.tags_of_service.update(autoscaling=_group_tags, ec2=_ec2_tags, elasticmapreduce=_emr_tags)


def _completed(arn_of: Callable[..., str]) -> Callable[..., Resource]:
    def completed(
        service: str, method: str, path: str, headers: Record, body: bytes, query: Record, region: str, account: str
    ) -> Resource:
        arn = arn_of(service, method, path, headers, body, query, region, account)
        asked = _fields(body, query)
        named = _named(service, asked, region, account)
        first, *rest = named or [arn]
        others: list[Asked] = [("", each, {}) for each in rest]
        operation = str(headers.get("x-amz-target", "")).rpartition(".")[2] or str(asked.get("Action", ""))
        found = Resource(first)
        found.also = (*others, *_passed(operation, asked, account))
        return found

    return completed


def _fields(body: bytes, query: Record) -> Record:
    fields = {name: value[0] if isinstance(value, list) else value for name, value in query.items()}
    try:
        found = json.loads(body or b"{}")
    except ValueError:
        found = {}
    return {**fields, **(found if isinstance(found, dict) else {})}


def _named(service: str, asked: Record, region: str, account: str) -> list[str]:
    fields, ending = _LISTED.get(service, ((), ""))
    for field in fields:
        if value := asked.get(field):
            names = value if isinstance(value, list) else [value]
            place = f"arn:aws:{service}:{region}:{account}:"
            return [name if name.startswith("arn:") else place + ending.format(name.lstrip("/")) for name in names]
    return []


def _passed(operation: str, asked: Record, account: str) -> Iterator[Asked]:
    for field, service in _PASSED.get(operation, {}).items():
        if role := str(asked.get(field) or ""):
            if field == "JobFlowRole":
                role = identities.role_of_profile(role)
            arn = role if role.startswith("arn:") else f"arn:aws:iam::{account}:role/{role}"
            yield "iam:PassRole", arn, {"iam:PassedToService": service}


def _group_tags() -> Iterator[tuple[str, list[Record]]]:
    place = f"arn:aws:autoscaling:{requests.region()}:{requests.account()}:autoScalingGroup:*:autoScalingGroupName"
    for name, record in autoscaling.groups.items():
        yield f"{place}/{name}", record.get("Tags") or []


def _ec2_tags() -> Iterator[tuple[str, list[Record]]]:
    for name, tags in ec2.tags.items():
        kind = _KINDS.get(name.partition("-")[0], "")
        yield f"arn:aws:ec2:{requests.region()}:{requests.account()}:{kind}/{name}", tags


def _emr_tags() -> Iterator[tuple[str, list[Record]]]:
    for name, record in emr.clusters.items():
        arn = f"arn:aws:elasticmapreduce:{requests.region()}:{requests.account()}:cluster/{name}"
        yield arn, record.get("Tags") or []


def tags_of(arn: str, service: str) -> Record:
    """The condition keys of a resource's tags."""
    found = identity.tags_of(arn) or {}
    prefixes = ("aws", service)
    return {f"{prefix}:ResourceTag/{name}": value for name, value in found.items() for prefix in prefixes}
