"""The rule on vCPU quotas: whether the account may run the whole topology at once.

Easy to get wrong: on-demand and spot machines are counted apart, by family and not by type, EMR's nodes among them; and
what this deployment runs already is not needed a second time. A cluster starts without the nodes that managed scaling
may add: that these find no room is no reason to refuse it.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from bootstrap.aws.ownership import read_tags
from bootstrap.lifecycle.rules import OnlineRule, PreflightContext
from infra import catalog
from infra.topology import TAG_DEPLOYMENT, Topology

_STANDARD = frozenset("acdhimrtz")
_OF_THEIR_OWN = frozenset(("dl", "hpc", "inf", "mac", "trn"))
"""Families that begin with the same letters and are counted elsewhere."""


@dataclass(frozen=True)
class VcpuQuota:
    """A service quota of EC2, in vCPUs."""

    code: str
    name: str


_ON_DEMAND = {
    "standard": VcpuQuota("L-1216C47A", "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"),
    "g": VcpuQuota("L-DB2E81BA", "Running On-Demand G and VT instances"),
    "p": VcpuQuota("L-417A185B", "Running On-Demand P instances"),
    "p5": VcpuQuota("L-417A185B", "Running On-Demand P instances"),
    "p6": VcpuQuota("L-417A185B", "Running On-Demand P instances"),
}
_SPOT = {
    "standard": VcpuQuota("L-34B43A08", "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests"),
    "g": VcpuQuota("L-3819A6DF", "All G and VT Spot Instance Requests"),
    "p": VcpuQuota("L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests"),
    "p5": VcpuQuota("L-C4BD4855", "All P5 Spot Instance Requests"),
}


class QuotaTooLow(OnlineRule):
    """The account may not run that many vCPUs of a family."""

    level = "error"
    about = "Whether the vCPU quotas suffice"

    def check(self, asked: PreflightContext) -> Iterator[str]:
        """Each quota that does not suffice, with the command that asks for more."""
        for short in _short(asked, needs(asked.topology)):
            yield (f"vCPU quota {short.said}, and this topology needs {short.needed}; ask for more: {short.command}")


class QuotaKeepsFromScaling(OnlineRule):
    """The account may run the cluster as it starts, and not with all nodes that managed scaling may add."""

    level = "warning"
    about = "Whether the vCPU quotas suffice for managed scaling"

    def check(self, asked: PreflightContext) -> Iterator[str]:
        """Each quota that does not suffice, with the command that asks for more."""
        at_start = needs(asked.topology)
        if (at_most := needs(asked.topology, scaled=True)) == at_start:
            return
        refused = {short.quota for short in _short(asked, at_start)}
        for short in _short(asked, at_most):
            if short.quota not in refused:
                yield (
                    f"vCPU quota {short.said}, and with all nodes that managed scaling may add this topology needs "
                    f"{short.needed}; EMR will add fewer, unless you ask for more: {short.command}"
                )


@dataclass(frozen=True, kw_only=True)
class _Short:
    """A quota that does not suffice, in vCPUs."""

    quota: VcpuQuota
    region: str
    value: float
    used: int
    needed: int

    @property
    def said(self) -> str:
        in_use = f", of which {self.used} are in use" if self.used else ""
        return f"'{self.quota.name}' of {self.region} is {self.value:g}{in_use}"

    @property
    def command(self) -> str:
        return (
            "aws service-quotas request-service-quota-increase --service-code ec2 --quota-code "
            f"{self.quota.code} --desired-value {self.used + self.needed} --region {self.region}"
        )


def _short(asked: PreflightContext, needed: Mapping[VcpuQuota, int]) -> list[_Short]:
    """Those of the needed vCPUs that the account may not run."""
    used, quotas = _used(asked), asked.account.client("service-quotas")
    found = [
        _Short(quota=quota, region=asked.topology.region, value=_value(quotas, quota), used=used[quota], needed=vcpus)
        for quota, vcpus in needed.items()
    ]
    return [each for each in found if each.used + each.needed > each.value]


def quota_of(name: str, *, spot: bool) -> VcpuQuota | None:
    """The quota that instances of a type count against; None for families that are not known here."""
    family = name.partition(".")[0].lower()
    letters = "".join(itertools.takewhile(str.isalpha, family))
    if letters in ("g", "gr", "vt"):
        kind = "g"
    elif letters == "p":
        kind = family[:2] if family[:2] in ("p5", "p6") else "p"
    elif letters[:1] in _STANDARD and letters not in _OF_THEIR_OWN:
        kind = "standard"
    else:
        return None
    return (_SPOT if spot else _ON_DEMAND).get(kind)


def needs(topology: Topology, *, scaled: bool = False) -> dict[VcpuQuota, int]:
    """The vCPUs of the whole topology at work, by quota; managed scaling as at its start, or with all it may add."""
    groups: list[tuple[str, int, bool]] = [
        (group.instance_type, group.count, group.market == "spot") for group in topology.training
    ]
    if emr := topology.preprocessing:
        groups.append((emr.primary.instance_type, 1, emr.primary.market == "spot"))
        groups += [
            (group.instance_type, count, group.market == "spot")
            for group, count in (emr.scaled_workers if scaled else [(group, group.count) for _, group in emr.workers])
        ]
    found: Counter[VcpuQuota] = Counter()
    for name, count, spot in groups:
        if quota := quota_of(name, spot=spot):
            found[quota] += count * catalog.find(name).vcpu
    return dict(found)


def _used(asked: PreflightContext) -> Counter[VcpuQuota]:
    """The vCPUs that run by now, but for this deployment's own."""
    used: Counter[VcpuQuota] = Counter()
    for reservation in asked.account.items(
        "ec2",
        "describe_instances",
        "Reservations",
        Filters=[{"Name": "instance-state-name", "Values": ["pending", "running"]}],
    ):
        for instance in reservation["Instances"]:
            if read_tags(instance.get("Tags")).get(TAG_DEPLOYMENT) == asked.deployment:
                continue
            quota = quota_of(instance["InstanceType"], spot=instance.get("InstanceLifecycle") == "spot")
            if quota:
                used[quota] += _vcpu(instance)
    return used


def _vcpu(instance: Mapping[str, Any]) -> int:
    """How many an instance has: cores and threads may be chosen, so that its type alone does not tell."""
    options = instance.get("CpuOptions") or {}
    if "CoreCount" in options:
        return int(options["CoreCount"]) * int(options.get("ThreadsPerCore", 1))
    known = catalog.catalog().types.get(instance["InstanceType"])
    return known.vcpu if known else 0


def _value(quotas: Any, quota: VcpuQuota) -> float:
    """What the account has; AWS's default where nobody ever asked for more."""
    try:
        answer = quotas.get_service_quota(ServiceCode="ec2", QuotaCode=quota.code)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchResourceException":
            raise
        answer = quotas.get_aws_default_service_quota(ServiceCode="ec2", QuotaCode=quota.code)
    return float(answer["Quota"]["Value"])
