"""Emulates settings of the account: quotas, the plan, and the default key for encrypted volumes.

The account is new, so its quotas have AWS's default values, with which no GPU instance and no training job starts. AWS
decides within minutes or days on a request for a higher quota. The emulator approves such a request at once. Faults of
the kind `QuotaLimit` also change quotas. Quotas do not limit EMR clusters, although AWS counts their instances. By
default, the plan is Paid, and AWS's own key encrypts volumes.
"""

import itertools
import re
import time
import uuid
from collections.abc import Iterable
from hashlib import sha256

from shoal_local_aws.faults.capacity import FAILED, SPOT, NoCapacityError
from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import FreePlan, QuotaLimit, VolumeKey
from shoal_local_aws.seams import ec2, requests, routing
from shoal_local_aws.service import Answer, Record, RefusedError, json_operation, json_service

# Codes, names and defaults of EC2's quotas: "Amazon EC2 endpoints and quotas" in the AWS General Reference, and the
# examples of `aws service-quotas` in the guide of the AWS CLI (L-1216C47A: 5), read on 2026-11-30.
_EC2 = {  # code of the quota: name, AWS's default
    "L-1216C47A": ("Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 5.0),
    "L-DB2E81BA": ("Running On-Demand G and VT instances", 0.0),
    "L-417A185B": ("Running On-Demand P instances", 0.0),
    "L-34B43A08": ("All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", 5.0),
    "L-3819A6DF": ("All G and VT Spot Instance Requests", 0.0),
    "L-7212CCBC": ("All P4, P3 and P2 Spot Instance Requests", 0.0),
    "L-C4BD4855": ("All P5 Spot Instance Requests", 0.0),
}
_ON_DEMAND = {"standard": "L-1216C47A", "g": "L-DB2E81BA", "p": "L-417A185B", "p5": "L-417A185B"}
_SPOT = {"standard": "L-34B43A08", "g": "L-3819A6DF", "p": "L-7212CCBC", "p5": "L-C4BD4855"}
_OTHERS = frozenset(("dl", "hpc", "inf", "mac", "trn"))
_SAGEMAKER = {
    f"L-{sha256(name.encode()).hexdigest()[:8].upper()}": (name, 0.0)
    for kind in (*("g4dn.xlarge", "g4dn.2xlarge", "g5.xlarge", "g5.2xlarge", "g5.12xlarge"), "g6.xlarge", "g6.12xlarge")
    for name in (f"ml.{kind} for training job usage", f"ml.{kind} for spot training job usage")
}
"""SageMaker quotas by quota code. These codes are not AWS's."""
_SERVICES = {"ec2": _EC2, "sagemaker": _SAGEMAKER}
_approved: dict[tuple[str, str, str], float] = {}
"""Approved values by account, region and quota code. As on AWS, each region has its own quotas."""


def install(faults: Faults) -> None:
    """Add the services for quotas and plans, and the operation that returns the default key for encrypted volumes."""

    def get(request: Record) -> Record:
        return {"Quota": _described(*_named(request), faults)}

    def list_all(request: Record) -> Record:
        service = request["ServiceCode"]
        return {"Quotas": [_described(service, code, faults) for code in _SERVICES.get(service, {})]}

    def raise_quota(request: Record) -> Record:
        service, code = _named(request)
        # Rule: A raised quota is above the present one. Source: cloud-custodian/cloud-custodian#8939.
        if request["DesiredValue"] <= _value(faults, code):
            message = "You must provide a quota value greater than the current quota value"
            raise RefusedError("IllegalArgumentException", message)
        _approved[_key(code)] = float(request["DesiredValue"])
        asked = {"Id": uuid.uuid4().hex, "DesiredValue": request["DesiredValue"], "Status": "APPROVED"}
        return {"RequestedQuota": {**_described(service, code, faults), **asked, "Created": time.time()}}

    operations = {
        "GetServiceQuota": json_operation(get),
        "ListServiceQuotas": json_operation(list_all),
        "RequestServiceQuotaIncrease": json_operation(raise_quota),
    }
    routing.add_service("servicequotas", "ServiceQuotasV20190624", json_service(operations))

    def plan(_: Record) -> Record:
        return {"accountId": requests.account(), "accountPlanType": "FREE" if faults.find(FreePlan) else "PAID"}

    # Belief: The default key of volumes is AWS's own. No check: an account may have chosen another key.
    def key(_: Record) -> Answer:
        chosen = faults.find(VolumeKey)
        body = f"<kmsKeyId>{chosen.key if chosen else 'alias/aws/ebs'}</kmsKeyId>"
        return ec2.answer(200, "GetEbsDefaultKmsKeyIdResponse", body)

    plans = {"GetAccountPlanState": json_operation(plan)}
    routing.add_service("freetier", "AWSFreeTierService", json_service(plans))
    ec2.operations.put(GetEbsDefaultKmsKeyId=key)


def require_vcpus(faults: Faults, running: Iterable[Record], *, instance_type: str, market: str) -> None:
    """Raise NoCapacityError if the quota does not allow an instance in addition to the `running` instances."""
    if (code := quota_of(instance_type, market)) is None:
        return
    others = [(each["InstanceType"], each.get("InstanceLifecycle", "on-demand")) for each in running]
    used = sum(vcpus(kind) for kind, bought in others if quota_of(kind, bought) == code)
    limit = _value(faults, code)
    # Rule: Quotas limit the vCPUs of running instances. Source: ITISFoundation/osparc-simcore#5408.
    # Rule: Quotas limit the vCPUs of spot instances. Source: Coalfire-Research/npk#107.
    if used + vcpus(instance_type) > limit:
        raise NoCapacityError(
            f"Max spot instance count exceeded. {FAILED}"
            if market == SPOT
            else f"You have requested more vCPU capacity than your current vCPU limit of {limit:g} allows for the "
            "instance bucket that the specified instance type belongs to. Please visit "
            f"http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit. {FAILED}"
        )


def require_jobs(faults: Faults, running: Iterable[Record], request: Record) -> None:
    """Raise RefusedError if the quota does not allow a training job in addition to the jobs `running`."""
    name, needed = _job_quota(request)
    code = next((code for code, (known, _) in _SAGEMAKER.items() if known == name), None)
    limit = _value(faults, code) if code else 0.0
    used = sum(count for other, count in map(_job_quota, running) if other == name)
    # Rule: Quotas limit the instances of jobs. Source: aws/amazon-sagemaker-examples#307.
    if used + needed > limit:
        raise RefusedError(
            "ResourceLimitExceeded",
            f"The account-level service limit '{name}' is {limit:g} Instances, with current utilization of {used} "
            f"Instances and a request delta of {needed} Instances. Please contact AWS support to request an increase "
            "for this limit.",
        )


def vcpus(instance_type: str) -> int:
    """Return the number of vCPUs of an instance type, which follows from the size: 4 for `xlarge`, 8 for `2xlarge`."""
    family, _, size = instance_type.partition(".")
    if found := re.fullmatch(r"(\d*)xlarge", size):
        return 4 * int(found[1] or 1)
    return 96 if (family, size) == ("g4dn", "metal") else 2


def quota_of(instance_type: str, market: str) -> str | None:
    """Return the code of the quota that limits an instance type, or None for a family without a known quota."""
    family = instance_type.partition(".")[0]
    letters = "".join(itertools.takewhile(str.isalpha, family))
    kind = "standard" if letters[:1] in "acdhimrtz" and letters not in _OTHERS else letters[:1]
    if letters == "p" and family[:2] in ("p5", "p6"):
        kind = "p5" if market != SPOT or family.startswith("p5") else ""
    return (_SPOT if market == SPOT else _ON_DEMAND).get(kind)


def _job_quota(job: Record) -> tuple[str, int]:
    """Return the name of the quota that limits a training job, and the number of its instances."""
    resources, spot = job["ResourceConfig"], job.get("EnableManagedSpotTraining")
    return f"{resources['InstanceType']} for {'spot ' if spot else ''}training job usage", resources["InstanceCount"]


def _named(request: Record) -> tuple[str, str]:
    """Return the codes of the service and the quota in a request. Raises RefusedError for an unknown quota."""
    service, code = request["ServiceCode"], request["QuotaCode"]
    # Rule: An unknown quota is refused. Source: botocore service-quotas GetServiceQuota.
    if code not in _SERVICES.get(service, {}):
        raise RefusedError("NoSuchResourceException", "The request failed because the specified quota does not exist.")
    return service, code


def _key(code: str) -> tuple[str, str, str]:
    return requests.account(), requests.region(), code


def _value(faults: Faults, code: str) -> float:
    """Return the value of a quota in the account and region of the current request."""
    fault = faults.find(QuotaLimit, code=code)
    return fault.value if fault else _approved.get(_key(code), {**_EC2, **_SAGEMAKER}[code][1])


def _described(service: str, code: str, faults: Faults) -> Record:
    return {
        "ServiceCode": service,
        "QuotaCode": code,
        "QuotaName": _SERVICES[service][code][0],
        "Value": _value(faults, code),
    }
