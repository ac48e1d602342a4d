"""Rules for service quotas. The quotas must suffice for all nodes of the topology at the same time.

AWS counts on-demand and spot instances separately, by instance family, and counts EMR nodes, too. Running instances of
this deployment are not added to the demand, because the topology already includes them.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from common.names import TAG_DEPLOYMENT
from infra import catalog
from infra.topology import Topology
from shoal.aws.account import read_tags
from shoal.deployments.rules import PreflightContext

_STANDARD = frozenset("acdhimrtz")
_OTHER_QUOTAS = frozenset(("dl", "hpc", "inf", "mac", "trn"))
"""Prefixes of instance families that start with a letter of _STANDARD but have quotas of their own."""


@dataclass(frozen=True)
class Quota:
    """Service quota. The quotas for EC2 instances are in vCPUs."""

    code: str
    name: str
    service: str = "ec2"


_ON_DEMAND = {
    "standard": Quota("L-1216C47A", "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"),
    "g": Quota("L-DB2E81BA", "Running On-Demand G and VT instances"),
    **dict.fromkeys(("p", "p5", "p6"), Quota("L-417A185B", "Running On-Demand P instances")),
}
_SPOT = {
    "standard": Quota("L-34B43A08", "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests"),
    "g": Quota("L-3819A6DF", "All G and VT Spot Instance Requests"),
    "p": Quota("L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests"),
    "p5": Quota("L-C4BD4855", "All P5 Spot Instance Requests"),
}


def quota_too_low(context: PreflightContext) -> Iterator[str]:
    """Yield a message for each insufficient vCPU quota, with the command that requests an increase."""
    used = _used(context)
    for quota, vcpus in needs(context.topology).items():
        yield from _shortage(context, quota, _value(context, quota), vcpus, used=used[quota])


def job_quota_too_low(context: PreflightContext) -> Iterator[str]:
    """Yield a message if SageMaker's quota does not suffice. Each instance type has one quota per market."""
    if (spec := context.topology.managed) is None:
        return
    name = f"{spec.instance_type} for {'spot ' if spec.market == 'spot' else ''}training job usage"
    for operation in ("list_service_quotas", "list_aws_default_service_quotas"):
        for each in context.account.items("service-quotas", operation, "Quotas", ServiceCode="sagemaker"):
            if each["QuotaName"] == name:
                yield from _shortage(context, Quota(each["QuotaCode"], name, "sagemaker"), each["Value"], spec.count)
                return


def _shortage(context: PreflightContext, quota: Quota, value: float, needed: int, *, used: int = 0) -> Iterator[str]:
    """Yield a message if the quota's value is less than the sum of `needed` and `used`."""
    if used + needed <= value:
        return
    region, in_use = context.topology.region, f" ({used} in use)" if used else ""
    unit = "vCPU " if quota.service == "ec2" else ""
    yield (
        f"{unit}quota '{quota.name}' in {region} is {value:g}{in_use}, but this topology needs {needed}; request "
        f"more: aws service-quotas request-service-quota-increase --service-code {quota.service} --quota-code "
        f"{quota.code} --desired-value {used + needed} --region {region}"
    )


def quota_of(name: str, *, spot: bool) -> Quota | None:
    """Return the EC2 quota that applies to an instance type, or None for an unknown instance family."""
    family = name.partition(".")[0].lower()
    letters = "".join(itertools.takewhile(str.isalpha, family))
    if letters in ("g", "gr", "vt"):
        kind = "g"
    elif letters == "p":
        kind = family[:2] if family[:2] in ("p5", "p6") else "p"
    elif letters[:1] in _STANDARD and letters not in _OTHER_QUOTAS:
        kind = "standard"
    else:
        return None
    return (_SPOT if spot else _ON_DEMAND).get(kind)


def needs(topology: Topology) -> dict[Quota, int]:
    """Return the number of vCPUs that the whole topology needs, by quota."""
    cluster = topology.preprocessing.groups if topology.preprocessing else ()
    vcpus: Counter[Quota] = Counter()
    for types, count, market in (
        *((group.types, group.count, group.market) for group in topology.training),
        *(((name,), count, market) for _, name, count, market in cluster),
    ):
        most: Counter[Quota] = Counter()
        for name in types:
            quota = quota_of(name, spot=market == "spot")
            if quota and market != "capacity-block":  # a Capacity Block has its own instances, outside the quotas
                most |= {quota: count * catalog.find(name).vcpu}
        vcpus += most
    return dict(vcpus)


def _used(context: PreflightContext) -> Counter[Quota]:
    """Return the number of running vCPUs in the account by quota, without the vCPUs of this deployment."""
    used: Counter[Quota] = Counter()
    running = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    for reservation in context.account.items("ec2", "describe_instances", "Reservations", Filters=running):
        for instance in reservation["Instances"]:
            quota = quota_of(instance["InstanceType"], spot=instance.get("InstanceLifecycle") == "spot")
            if quota and read_tags(instance.get("Tags")).get(TAG_DEPLOYMENT) != context.deployment:
                used[quota] += _vcpu(instance)
    return used


def _vcpu(instance: Mapping[str, Any]) -> int:
    """Return the number of vCPUs of an instance. An instance can have fewer cores or threads than its instance type
    allows."""
    if options := instance.get("CpuOptions"):
        return int(options["CoreCount"]) * int(options["ThreadsPerCore"])
    known = catalog.catalog().types.get(instance["InstanceType"])
    return known.vcpu if known else 0


def _value(context: PreflightContext, quota: Quota) -> float:
    """Return the value of the account's quota, or AWS's default value if the quota was never changed."""
    quotas, named = context.account.client("service-quotas"), {"ServiceCode": quota.service, "QuotaCode": quota.code}
    try:
        answer = quotas.get_service_quota(**named)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchResourceException":
            raise
        answer = quotas.get_aws_default_service_quota(**named)
    return float(answer["Quota"]["Value"])
