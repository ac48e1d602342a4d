"""Makes ministack's VPC endpoints tell what EC2 tells of them: their state, their security groups, their private DNS.

EC2 gives an interface endpoint private DNS and the VPC's default security group unless the request says otherwise.
"""

from collections.abc import Callable
from typing import Any

from embedded.faults.file import Faults
from embedded.faults.kinds import EndpointState
from embedded.seams import ec2
from embedded.service import Record, parameter


def install(faults: Faults) -> None:
    """Keep and tell what ministack drops of endpoints."""
    render = ec2.endpoint_xml.now

    def endpoint_xml(record: Record, tag: str = "item") -> str:
        fault = faults.find(EndpointState, service=record["ServiceName"].rpartition(".")[2])
        told = {**record, "State": fault.state} if fault else record
        groups = "".join(f"<item><groupId>{group}</groupId></item>" for group in record.get("SecurityGroupIds") or ())
        private = "true" if record.get("PrivateDnsEnabled") else "false"
        more = f"<privateDnsEnabled>{private}</privateDnsEnabled><groupSet>{groups}</groupSet></{tag}>"
        return render(told, tag).removesuffix(f"</{tag}>") + more

    ec2.endpoint_xml.put(endpoint_xml)
    ec2.operations.wrap("CreateVpcEndpoint", _keeping)


def _keeping(create: Callable[[Record], Any]) -> Callable[[Record], Any]:
    def create_and_keep(parameters: Record) -> Any:
        known = set(ec2.vpc_endpoints.keys())
        answer = create(parameters)
        for name in set(ec2.vpc_endpoints.keys()) - known:
            record = ec2.vpc_endpoints[name]
            if record["VpcEndpointType"] == "Interface":
                record["SecurityGroupIds"] = ec2.list_parameter(parameters, "SecurityGroupId") or [
                    group["GroupId"]
                    for group in ec2.security_groups.values()
                    if group["VpcId"] == record["VpcId"] and group["GroupName"] == "default"
                ]
                record["PrivateDnsEnabled"] = parameter(parameters, "PrivateDnsEnabled") != "false"
        return answer

    return create_and_keep
