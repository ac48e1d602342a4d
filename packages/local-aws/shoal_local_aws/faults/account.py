"""Emulates read-only settings of an account: the quotas for vCPUs and training jobs, the plan, and the default key for
encrypted volumes.

By default quotas are high, the plan is Paid, and AWS's own key encrypts volumes. Faults of the kinds `QuotaLimit`,
`FreePlan` and `VolumeKey` change these settings. Requests for higher quotas are not emulated. Nor is the setting that
encrypts all volumes by default.
"""

from hashlib import sha256
from typing import Any

from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import FreePlan, QuotaLimit, VolumeKey
from shoal_local_aws.seams import ec2, requests, routing
from shoal_local_aws.service import Answer, Record, RefusedError, json_operation, json_service

_EC2 = {  # code of the quota: name, value of the account, AWS's default
    "L-1216C47A": ("Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 1152.0, 5.0),
    "L-DB2E81BA": ("Running On-Demand G and VT instances", 768.0, 0.0),
    "L-417A185B": ("Running On-Demand P instances", 768.0, 0.0),
    "L-34B43A08": ("All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", 1152.0, 5.0),
    "L-3819A6DF": ("All G and VT Spot Instance Requests", 768.0, 0.0),
    "L-7212CCBC": ("All P4, P3 and P2 Spot Instance Requests", 768.0, 0.0),
    "L-C4BD4855": ("All P5 Spot Instance Requests", 768.0, 0.0),
}
_SAGEMAKER = {
    f"L-{sha256(name.encode()).hexdigest()[:8].upper()}": (name, 20.0, 0.0)
    for kind in (*("g4dn.xlarge", "g4dn.2xlarge", "g5.xlarge", "g5.2xlarge", "g5.12xlarge"), "g6.xlarge", "g6.12xlarge")
    for name in (f"ml.{kind} for training job usage", f"ml.{kind} for spot training job usage")
}
"""SageMaker quotas by quota code. These codes are not AWS's."""
_SERVICES = {  # code of the service: name, quotas
    "ec2": ("Amazon Elastic Compute Cloud (Amazon EC2)", _EC2),
    "sagemaker": ("Amazon SageMaker", _SAGEMAKER),
}


def install(faults: Faults) -> None:
    """Add the services for quotas and plans, and the operation that returns the default key for encrypted volumes."""
    _add_quotas(faults)

    def plan(request: Record) -> Record:
        del request
        kind = "FREE" if faults.find(FreePlan) else "PAID"
        return {"accountId": requests.account(), "accountPlanType": kind, "accountPlanStatus": "ACTIVE"}

    # Belief: The default key of volumes is AWS's own. No check: an account may have chosen another key.
    def key(parameters: Record) -> Answer:
        del parameters
        chosen = faults.find(VolumeKey)
        body = f"<kmsKeyId>{chosen.key if chosen else 'alias/aws/ebs'}</kmsKeyId>"
        return ec2.answer(200, "GetEbsDefaultKmsKeyIdResponse", body)

    operations = {"GetAccountPlanState": json_operation(plan)}
    routing.add_service("freetier", "AWSFreeTierService", json_service("Free Tier", operations))
    ec2.operations.put(GetEbsDefaultKmsKeyId=key)


def _add_quotas(faults: Faults) -> None:
    def found(service: str, code: str) -> Record:
        title, codes = _SERVICES[service]
        fault = faults.find(QuotaLimit, code=code)
        name, value, _ = codes[code]
        return _described(service, title, code, name, value if fault is None else fault.value)

    def get(request: Record) -> Record:
        service, code = request["ServiceCode"], request["QuotaCode"]
        # Rule: An unknown quota is refused. Source: botocore service-quotas GetServiceQuota.
        if service not in _SERVICES or code not in _SERVICES[service][1]:
            message = "The request failed because the specified quota does not exist."
            raise RefusedError("NoSuchResourceException", message)
        return {"Quota": found(service, code)}

    def get_default(request: Record) -> Record:
        quota = get(request)["Quota"]
        return {"Quota": {**quota, "Value": _SERVICES[request["ServiceCode"]][1][request["QuotaCode"]][2]}}

    def list_all(request: Record) -> Record:
        service = request["ServiceCode"]
        return {"Quotas": [found(service, code) for code in _SERVICES[service][1]] if service in _SERVICES else []}

    def list_defaults(request: Record) -> Record:
        codes = _SERVICES.get(request["ServiceCode"], ("", {}))[1]
        return {"Quotas": [{**each, "Value": codes[each["QuotaCode"]][2]} for each in list_all(request)["Quotas"]]}

    operations = {
        "ListAWSDefaultServiceQuotas": json_operation(list_defaults),
        "GetServiceQuota": json_operation(get),
        "GetAWSDefaultServiceQuota": json_operation(get_default),
        "ListServiceQuotas": json_operation(list_all),
    }
    routing.add_service("servicequotas", "ServiceQuotasV20190624", json_service("Service Quotas", operations))


def _described(service: str, title: str, code: str, name: str, value: float) -> dict[str, Any]:
    return {
        "ServiceCode": service,
        "ServiceName": title,
        "QuotaArn": f"arn:aws:servicequotas:{requests.region()}:{requests.account()}:{service}/{code}",
        "QuotaCode": code,
        "QuotaName": name,
        "Value": value,
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
    }
