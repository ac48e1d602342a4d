"""Emulates Service Quotas, read-only: the vCPUs that an account may run, by market and family.

By default the account's quotas are high; a fault of kind `QuotaLimit` lowers one. Requests for higher quotas are not
supported.
"""

from typing import Any

from embedded.faults.file import Faults
from embedded.faults.kinds import QuotaLimit
from embedded.seams import requests, routing
from embedded.service import Record, RefusedError, json_operation, json_service

_TARGET = "ServiceQuotasV20190624"
_EC2 = {  # code: name, the account's vCPUs, AWS's default
    "L-1216C47A": ("Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 1152.0, 5.0),
    "L-DB2E81BA": ("Running On-Demand G and VT instances", 768.0, 0.0),
    "L-417A185B": ("Running On-Demand P instances", 768.0, 0.0),
    "L-34B43A08": ("All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", 1152.0, 5.0),
    "L-3819A6DF": ("All G and VT Spot Instance Requests", 768.0, 0.0),
    "L-7212CCBC": ("All P4, P3 and P2 Spot Instance Requests", 768.0, 0.0),
    "L-C4BD4855": ("All P5 Spot Instance Requests", 768.0, 0.0),
}


def install(faults: Faults) -> None:
    """Add the service to ministack."""

    def value(code: str) -> float:
        fault = faults.find(QuotaLimit, code=code)
        return _EC2[code][1] if fault is None else fault.value

    def get(request: Record) -> Record:
        code = request["QuotaCode"]
        if request["ServiceCode"] != "ec2" or code not in _EC2:
            message = "The request failed because the specified quota does not exist."
            raise RefusedError("NoSuchResourceException", message)
        return {"Quota": _described(code, value(code))}

    def get_default(request: Record) -> Record:
        return {"Quota": {**get(request)["Quota"], "Value": _EC2[request["QuotaCode"]][2]}}

    def list_all(request: Record) -> Record:
        codes = _EC2 if request["ServiceCode"] == "ec2" else ()
        return {"Quotas": [_described(code, value(code)) for code in codes]}

    operations = {
        "GetServiceQuota": json_operation(get),
        "GetAWSDefaultServiceQuota": json_operation(get_default),
        "ListServiceQuotas": json_operation(list_all),
    }
    routing.add_service("servicequotas", _TARGET, json_service("Service Quotas", operations))


def _described(code: str, value: float) -> dict[str, Any]:
    return {
        "ServiceCode": "ec2",
        "ServiceName": "Amazon Elastic Compute Cloud (Amazon EC2)",
        "QuotaArn": f"arn:aws:servicequotas:{requests.region()}:{requests.account()}:ec2/{code}",
        "QuotaCode": code,
        "QuotaName": _EC2[code][0],
        "Value": value,
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
    }
