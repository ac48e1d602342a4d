"""Applies the filters of EC2's describe calls that ministack ignores.

If a filter were ignored, a call would return all resources. So unsupported filters are refused.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from shoal_local_aws.seams import ec2
from shoal_local_aws.seams.lookup import Table
from shoal_local_aws.service import Record, RefusedError, answering

# By operation: the records, the key of their identifier, the response element, and the filters that ministack applies.
_DESCRIBED: Mapping[str, tuple[Table, str, str, str]] = {
    "DescribeAddresses": (ec2.addresses, "AllocationId", "addressesSet", ""),
    "DescribeVpcEndpoints": (ec2.vpc_endpoints, "VpcEndpointId", "vpcEndpointSet", ""),
    "DescribeNetworkInterfaces": (ec2.network_interfaces, "NetworkInterfaceId", "networkInterfaceSet", ""),
    "DescribeInstances": (
        *(ec2.instances, "InstanceId", "reservationSet"),
        "instance-state-name instance-type image-id",
    ),
}
# By operation: the filters that ministack applies, in addition to tag filters. All other filters are refused.
_KNOWN: Mapping[str, str] = {
    "DescribeAvailabilityZones": "",
    "DescribeFlowLogs": "resource-id",
    "DescribeInternetGateways": "internet-gateway-id owner-id attachment.vpc-id attachment.state",
    "DescribeLaunchTemplates": "launch-template-name",
    "DescribeNatGateways": "state vpc-id subnet-id",
    "DescribePlacementGroups": "group-name state strategy",
    "DescribeRouteTables": "vpc-id association.route-table-association-id association.subnet-id association.main",
    "DescribeSecurityGroups": "vpc-id group-name",
    "DescribeSubnets": "vpc-id availability-zone subnet-id cidr-block default-for-az",
    "DescribeVpcs": "vpc-id cidr state owner-id is-default",
}


def install() -> None:
    """Wrap ministack's describe calls. They then do not delete the records of terminated instances, because a record
    could disappear after this module has selected it and before ministack describes it."""
    forget = ec2.forget_ended.now
    ec2.forget_ended.put(lambda: None)
    for operation in _DESCRIBED:
        ec2.operations.wrap(operation, partial(_filtered, operation, forget))
    for operation, known in _KNOWN.items():
        ec2.operations.wrap(operation, partial(_with_known, known.split()))


def _with_known(known: Collection[str], describe: Callable[[Record], Any]) -> Callable[[Record], Any]:
    def describe_known(parameters: Record) -> Any:
        for name in ec2.filters(parameters):
            if name not in known and not _is_tag_filter(name):
                return ec2.error("InvalidParameterValue", f"The embedded AWS does not support filter {name!r}.")
        return describe(parameters)

    return describe_known


def _filtered(operation: str, forget: Callable[[], None], describe: Callable[[Record], Any]) -> Callable[[Record], Any]:
    records, identifier, element, known = _DESCRIBED[operation]

    def describe_filtered(parameters: Record) -> Any:
        forget()
        filters = {name: values for name, values in ec2.filters(parameters).items() if name not in known.split()}
        if not filters:
            return describe(parameters)
        asked = ec2.list_parameter(parameters, identifier)
        found = [
            record[identifier]
            for record in records.values()
            if (not asked or record[identifier] in asked) and _matches(record, record[identifier], filters)
        ]
        if not found:
            return ec2.answer(200, f"{operation}Response", f"<{element}/>")
        rest = {name: value for name, value in parameters.items() if not name.startswith(f"{identifier}.")}
        return describe({**rest, **{f"{identifier}.{number}": [one] for number, one in enumerate(found, start=1)}})

    return answering(ec2.error, describe_filtered)


def _matches(record: Record, identifier: str, filters: dict[str, list[str]]) -> bool:
    if not ec2.has_tags(identifier, filters):
        return False
    return all(_values(record, name) & set(values) for name, values in filters.items() if not _is_tag_filter(name))


def _is_tag_filter(name: str) -> bool:
    return name in ("tag-key", "tag-value") or name.startswith("tag:")


def _values(record: Record, name: str) -> set[str]:
    """Return a record's values for the filter `name`, such as its VpcId for `vpc-id`."""
    key = "".join(part.title() for part in name.split("-"))
    for held in (record.get(key), record.get(f"{key}s")):
        if held is not None:
            return set(held) if isinstance(held, list) else {str(held)}
    raise RefusedError("InvalidParameterValue", f"The embedded AWS does not support filter {name!r}.")
