"""Finds the resources of a request, their tags, and the additional permissions that the request needs.

This module does what ministack does not. It reads lists of resources. It adds `iam:PassRole` for roles that are passed
to a service.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping

from shoal_local_aws.permissions import identities, launches
from shoal_local_aws.permissions.launches import Permission
from shoal_local_aws.seams import autoscaling, ec2, emr, identity, requests, storage
from shoal_local_aws.seams.lookup import Record

_PLACES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "elasticmapreduce": (
        ("ClusterId", "JobFlowId", "JobFlowIds", "ResourceId"),
        "elasticmapreduce:{region}:{account}:cluster/{name}",
    ),
    "events": (("Rule", "Name"), "events:{region}:{account}:rule/{name}"),
    "iam": (("InstanceProfileName",), "iam::{account}:instance-profile/{name}"),
    "monitoring": (("AlarmNames",), "cloudwatch:{region}:{account}:alarm:{name}"),
    "sagemaker": (("TrainingJobName", "ResourceArn"), "sagemaker:{region}:{account}:training-job/{name}"),
    "ssm": (("Names", "Path"), "ssm:{region}:{account}:parameter/{name}"),
}
"""Request fields that name resources, and the ARN pattern of these resources, by service."""
_KINDS = {
    "acl": "network-acl",
    "eipalloc": "elastic-ip",
    "eni": "network-interface",
    "fl": "vpc-flow-log",
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
"""Types of EC2 resources, by the prefix of their ids."""
_ENDING = re.compile("Delete|Detach|Disassociate|Release|Revoke|Terminate")
"""First words of the EC2 operations that delete, detach or terminate resources."""
_MOUNT_TARGET = re.compile("/mount-targets/([^/]+)")
_PASSED: Mapping[str, Mapping[str, str]] = {
    "CreateChangeSet": {"RoleARN": "cloudformation.amazonaws.com"},
    "CreateFlowLogs": {"DeliverLogsPermissionArn": ""},
    "CreateTrainingJob": {"RoleArn": "sagemaker.amazonaws.com"},
    "CreateStack": {"RoleARN": "cloudformation.amazonaws.com"},
    "DeleteStack": {"RoleARN": "cloudformation.amazonaws.com"},
    "RunJobFlow": {"JobFlowRole": "ec2.amazonaws.com", "ServiceRole": "elasticmapreduce.amazonaws.com"},
    "UpdateStack": {"RoleARN": "cloudformation.amazonaws.com"},
}
"""Request fields that pass a role to a service, with the value of `iam:PassedToService`, by operation. The value is
empty if AWS does not document it."""


class Resource(str):
    """ARN of a request's resource. `also` are additional permissions that the request needs."""

    also: tuple[Permission, ...] = ()
    keys: Record = {}  # noqa: RUF012 -- replaced, never changed
    """Condition keys of the request."""


def install() -> None:
    """Make ministack look up the resources, tags and additional permissions of requests with this module."""
    identity.resource.wrap(_completed)
    identity.tags_of_service.update(
        autoscaling=_group_tags, ec2=_ec2_tags, elasticfilesystem=_efs_tags, elasticmapreduce=_emr_tags
    )


def _completed(arn_of: Callable[..., str]) -> Callable[..., Resource]:
    def completed(
        service: str, method: str, path: str, headers: Record, body: bytes, query: Record, region: str, account: str
    ) -> Resource:
        arn = arn_of(service, method, path, headers, body, query, region, account)
        asked = _fields(body, query)
        operation = str(headers.get("x-amz-target", "")).rpartition(".")[2] or str(asked.get("Action", ""))
        named = _named(service, asked, region, account)
        target = _MOUNT_TARGET.search(path) if service == "elasticfilesystem" else None
        if target and (mounted := storage.mount_targets.get(target[1])):
            named = [f"arn:aws:elasticfilesystem:{region}:{account}:file-system/{mounted['FileSystemId']}"]
        if service == "logs" and operation in ("DescribeLogStreams", "DeleteLogStream"):
            stream = f"{asked.get('logGroupName')}:log-stream:{asked.get('logStreamName', '')}"
            named = [f"arn:aws:logs:{region}:{account}:log-group:{stream}"]
        if operation == "SendCommand":
            named = list(_commanded(asked, region, account))
        if service == "ec2" and _ENDING.match(operation):
            named = [f"arn:aws:ec2:{region}:{account}:{each}" for each in _ended(operation, asked)]
        first, *others = named or [arn]
        found = Resource(first)
        also: list[Permission] = [("", each, {}) for each in others]
        if service == "sagemaker" and asked.get("Tags"):
            also.append(("sagemaker:AddTags", first, {}))
        if namespace := asked.get("Namespace"):
            found.keys = {"cloudwatch:namespace": namespace}
        found.also = (*also, *_passed(operation, asked, account))
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
    fields, place = _PLACES.get(service, ((), ""))
    for field in fields:
        if value := asked.get(field) or asked.get(f"{field}.member.1"):
            names = value if isinstance(value, list) else [value]
            place = f"arn:aws:{place.format(region=region, account=account, name='{}')}"
            return [name if name.startswith("arn:") else place.format(name.lstrip("/")) for name in names]
    return []


def _commanded(asked: Record, region: str, account: str) -> Iterator[str]:
    """Yield the document and the instances of SendCommand, which needs permission for each of them.

    Sources: AWS Systems Manager User Guide, "Setting up Run Command"; for the ARNs, msaad00/agent-bom pull request
    3952, both read 2026-11-30.
    """
    document = str(asked.get("DocumentName", ""))
    owner = "" if document.startswith("AWS-") else account
    yield document if document.startswith("arn:") else f"arn:aws:ssm:{region}:{owner}:document/{document}"
    for identifier in asked.get("InstanceIds") or ():
        yield f"arn:aws:ec2:{region}:{account}:instance/{identifier}"


def _ended(operation: str, asked: Record) -> Iterator[str]:
    """Yield KIND/ID for each resource that an EC2 request deletes, detaches or terminates."""
    for field, value in asked.items():
        kind = _KINDS.get(str(value).partition("-")[0])
        if kind and re.search(r"Id(\.\d+)?$", field) and "." not in field.partition("Id")[0]:
            yield f"{kind}/{value}"
    if operation == "DeletePlacementGroup":
        yield f"placement-group/{asked.get('GroupName')}"
    if association := asked.get("AssociationId"):
        yield from _associated(association)


def _associated(association: str) -> Iterator[str]:
    for identifier, address in ec2.addresses.items():
        if address.get("AssociationId") == association:
            yield f"elastic-ip/{identifier}"
    for identifier, table in ec2.route_tables.items():
        if any(each.get("RouteTableAssociationId") == association for each in table["Associations"]):
            yield f"route-table/{identifier}"


def _passed(operation: str, asked: Record, account: str) -> Iterator[Permission]:
    for field, service in _PASSED.get(operation, {}).items():
        if role := str(asked.get(field) or ""):
            if field == "JobFlowRole":
                role = identities.role_of_profile(role)
            arn = role if role.startswith("arn:") else f"arn:aws:iam::{account}:role/{role}"
            yield "iam:PassRole", arn, launches.passed_to(service)


def _group_tags() -> Iterator[tuple[str, list[Record]]]:
    place = f"arn:aws:autoscaling:{requests.region()}:{requests.account()}:autoScalingGroup:*:autoScalingGroupName"
    for name, record in autoscaling.groups.items():
        yield f"{place}/{name}", record.get("Tags") or []


def _ec2_tags() -> Iterator[tuple[str, list[Record]]]:
    place = f"arn:aws:ec2:{requests.region()}:{requests.account()}"
    for name, tags in ec2.tags.items():
        kind = _KINDS.get(name.partition("-")[0], "")
        yield f"{place}:{kind}/{name}", tags
    for name, group in ec2.placement_groups.items():
        yield f"{place}:placement-group/{name}", ec2.tags.get(group["GroupId"]) or []


def _efs_tags() -> Iterator[tuple[str, list[Record]]]:
    for record in storage.file_systems.values():
        yield record["FileSystemArn"], record.get("Tags") or []
    for record in storage.access_points.values():
        yield record["AccessPointArn"], record.get("Tags") or []


def _emr_tags() -> Iterator[tuple[str, list[Record]]]:
    for name, record in emr.clusters.items():
        arn = f"arn:aws:elasticmapreduce:{requests.region()}:{requests.account()}:cluster/{name}"
        yield arn, record.get("Tags") or []


def tags_of(arn: str, service: str) -> Record:
    """Return the condition keys for the tags of a resource."""
    found = identity.tags_of(arn) or {}
    prefixes = ("aws", service)
    return {f"{prefix}:ResourceTag/{name}": value for name, value in found.items() for prefix in prefixes}
