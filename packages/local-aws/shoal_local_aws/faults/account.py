"""Emulates what an account has chosen, read-only: its plan, and the key by which its volumes are encrypted.

By default it has the Paid plan, and the key of encrypted volumes is AWS's own; faults of kinds `FreePlan` and
`VolumeKey` change that. Whether volumes are encrypted where nobody asks for it is not emulated (on AWS by default not).
"""

from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import FreePlan, VolumeKey
from shoal_local_aws.seams import ec2, requests, routing
from shoal_local_aws.service import Answer, Record, json_operation, json_service

_OWN_KEY = "alias/aws/ebs"


def install(faults: Faults) -> None:
    """Add the service of plans, and the operations on the account's encryption of volumes."""

    def plan(request: Record) -> Record:
        del request
        free = faults.find(FreePlan)
        return {
            "accountId": requests.account(),
            "accountPlanType": "FREE" if free else "PAID",
            "accountPlanStatus": "ACTIVE",
        }

    def key(parameters: Record) -> Answer:
        del parameters
        chosen = faults.find(VolumeKey)
        body = f"<kmsKeyId>{chosen.key if chosen else _OWN_KEY}</kmsKeyId>"
        return ec2.answer(200, "GetEbsDefaultKmsKeyIdResponse", body)

    operations = {"GetAccountPlanState": json_operation(plan)}
    routing.add_service("freetier", "AWSFreeTierService", json_service("Free Tier", operations))
    ec2.operations.put(GetEbsDefaultKmsKeyId=key)
