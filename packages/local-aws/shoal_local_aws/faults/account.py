"""Emulates read-only settings of an account: the plan, and the default key for encrypted volumes.

By default, the plan is Paid, and AWS's own key encrypts volumes. Faults of the kinds `FreePlan` and `VolumeKey` change
these settings. The setting that encrypts all volumes by default is not emulated.
"""

from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import FreePlan, VolumeKey
from shoal_local_aws.seams import ec2, requests, routing
from shoal_local_aws.service import Answer, Record, json_operation, json_service


def install(faults: Faults) -> None:
    """Add the service for plans, and the operation that returns the default key for encrypted volumes."""

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
    routing.add_service("freetier", "AWSFreeTierService", json_service(operations))
    ec2.operations.put(GetEbsDefaultKmsKeyId=key)
