"""Emulates GuardDuty's automated agent, if a fault of the kind `GuardDutyAgent` requires it.

When an instance starts in a network, the agent adds an interface endpoint and a security group to the network, both
with the tag `GuardDutyManaged`. It does not delete them with the network.
"""

import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import GuardDutyAgent
from shoal_local_aws.seams import ec2, requests
from shoal_local_aws.service import Record

# Rule: The agent leaves its endpoint and group in a network. Source: "Using Infrastructure as Code (IaC) with GuardDuty
# automated security agents", Amazon GuardDuty User Guide, read 2026-11-30.
# Rule: Both have this tag. Source: "AmazonGuardDutyServiceRolePolicy", AWS managed policy, v11 of 2026-03-25.
_TAG = "GuardDutyManaged"


def install(faults: Faults) -> None:
    """Let the deletion of the agent's endpoints take the time that the fault gives."""
    ec2.operations.wrap("DeleteVpcEndpoints", partial(_slow, faults))


def watch(instance: Record, faults: Faults) -> None:
    """Add the agent's endpoint and security group to the network of a new instance, if the network lacks them."""
    network = instance["VpcId"]
    name = f"GuardDutyManagedSecurityGroup-{network}"
    if not faults.find(GuardDutyAgent):
        return
    group = _created("security-group", "CreateSecurityGroup", GroupName=name, VpcId=network)
    if not group:  # a duplicate
        return
    service = f"com.amazonaws.{requests.region()}.guardduty-data"
    places = {"VpcId": network, "SubnetId.1": instance["SubnetId"], "SecurityGroupId.1": group}
    _created("vpc-endpoint", "CreateVpcEndpoint", VpcEndpointType="Interface", ServiceName=service, **places)


def _created(kind: str, operation: str, **parameters: str) -> str:
    """Create a resource with the agent's tag, and return its id."""
    tag = {"ResourceType": kind, "Tag.1.Key": _TAG, "Tag.1.Value": "true"}
    tagged = {f"TagSpecification.1.{name}": value for name, value in tag.items()}
    answer = ec2.operations.now(operation)({name: [value] for name, value in {**parameters, **tagged}.items()})
    found = re.search("<(?:groupId|vpcEndpointId)>([^<]+)", answer[2].decode())
    return found[1] if found else ""


def _slow(faults: Faults, delete: Callable[[Record], Any]) -> Callable[[Record], Any]:
    def deleting(parameters: Record) -> Any:
        fault, names = faults.find(GuardDutyAgent), ec2.list_parameter(parameters, "VpcEndpointId")
        own = [name for name in names if any(each["Key"] == _TAG for each in ec2.tags.get(name) or ())]
        if not fault or not own:
            return delete(parameters)
        for name in own:
            ec2.vpc_endpoints[name]["State"] = "deleting"
        requests.spawn_background(_end, fault.seconds, delete, parameters, thread_name="guardduty")
        return ec2.answer(200, "DeleteVpcEndpointsResponse", "<unsuccessful/>")

    return deleting


def _end(seconds: float, delete: Callable[[Record], Any], parameters: Record) -> None:
    time.sleep(seconds)
    delete(parameters)
