"""CloudFormation types of EC2 that ministack lacks."""

from base64 import b64decode
from collections.abc import Callable, Mapping

from shoal_local_aws.cloudformation.resource_type import TAGS, Created, ResourceType, call_service
from shoal_local_aws.seams.cloudformation import generated_name
from shoal_local_aws.service import Record, client

_SOURCES = {  # property of a rule in a template: path in EC2's format
    "CidrIp": ("IpRanges", "CidrIp"),
    "SourceSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    "DestinationSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
}
_QUICK = {"Delay": 1, "MaxAttempts": 300}
"""Pause in seconds, and number of requests, while an instance starts or terminates."""


def _tagged(properties: Record, kind: str) -> Record:
    """Return the TagSpecifications for an EC2 resource of type `kind`."""
    tags = properties.get(TAGS)
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": tags}]} if tags else {}


def _change_ec2_tags(identifier: str, old: Record, new: Record) -> None:
    kept = {tag["Key"] for tag in new.get(TAGS) or []}
    gone = [{"Key": tag["Key"]} for tag in old.get(TAGS) or [] if tag["Key"] not in kept]
    if gone:
        client("ec2").delete_tags(Resources=[identifier], Tags=gone)
    if kept:
        call_service("ec2", "create_tags", {"Resources": [identifier], TAGS: new[TAGS]})


def _create_rule(direction: str) -> Callable[[str, Record, str], Created]:
    def create(logical: str, properties: Record, stack: str) -> Created:
        del logical, stack
        answer = call_service(
            "ec2",
            f"authorize_security_group_{direction}",
            {"GroupId": properties["GroupId"], "IpPermissions": [_permission(properties)]},
        )
        identifier = answer["SecurityGroupRules"][0]["SecurityGroupRuleId"]
        return identifier, {"Id": identifier}

    return create


def _permission(properties: Record) -> Record:
    """Return a security group rule in EC2's format. In a template, each kind of source has its own property."""
    ports: Record = {name: properties[name] for name in ("FromPort", "ToPort") if name in properties}
    sources: Record = {}
    for name, (kind, key) in _SOURCES.items():
        if properties.get(name):
            described = {"Description": properties["Description"]} if properties.get("Description") else {}
            sources.setdefault(kind, described)[key] = properties[name]
    return {
        "IpProtocol": properties.get("IpProtocol", "tcp"),
        **ports,
        **{kind: [source] for kind, source in sources.items()},
    }


def _delete_rule(direction: str) -> Callable[[str, Record], None]:
    def delete(identifier: str, properties: Record) -> None:
        revoke = getattr(client("ec2"), f"revoke_security_group_{direction}")
        revoke(GroupId=properties["GroupId"], SecurityGroupRuleIds=[identifier])

    return delete


def _create_flow_log(logical: str, properties: Record, stack: str) -> Created:
    del logical, stack
    values = {name: value for name, value in properties.items() if name not in ("ResourceId", TAGS)}
    answer = call_service(
        "ec2",
        "create_flow_logs",
        {**values, "ResourceIds": [properties["ResourceId"]], **_tagged(properties, "vpc-flow-log")},
    )
    identifier = answer["FlowLogIds"][0]
    _change_ec2_tags(identifier, {}, properties)  # ministack ignores the tags in the request above
    return identifier, {"Id": identifier}


def _create_address(logical: str, properties: Record, stack: str) -> Created:
    del logical, stack
    answer = call_service("ec2", "allocate_address", {"Domain": "vpc", **_tagged(properties, "elastic-ip")})
    return answer["PublicIp"], {"AllocationId": answer["AllocationId"], "PublicIp": answer["PublicIp"]}


def _allocation(address: str) -> str | None:
    known = client("ec2").describe_addresses()["Addresses"]
    return next((str(entry["AllocationId"]) for entry in known if entry["PublicIp"] == address), None)


def _delete_address(identifier: str, properties: Record) -> None:
    del properties
    allocation = _allocation(identifier)
    if allocation is not None:
        client("ec2").release_address(AllocationId=allocation)


def _change_address_tags(identifier: str, old: Record, new: Record) -> None:
    allocation = _allocation(identifier)
    # Belief: New tags of a released address make an update fail. No check: it takes a stack.
    if allocation is None:
        raise ValueError(f"The address {identifier} does not exist (Service: Ec2, Status Code: 400)")
    _change_ec2_tags(allocation, old, new)


def _create_nat_gateway(logical: str, properties: Record, stack: str) -> Created:
    del logical, stack
    values = {name: value for name, value in properties.items() if name != TAGS}
    answer = call_service("ec2", "create_nat_gateway", {**values, **_tagged(properties, "natgateway")})
    identifier = answer["NatGateway"]["NatGatewayId"]
    return identifier, {"NatGatewayId": identifier}


def _create_instance(logical: str, properties: Record, stack: str) -> Created:
    del logical, stack
    values = {name: value for name, value in properties.items() if name != TAGS}
    if profile := values.get("IamInstanceProfile"):
        values["IamInstanceProfile"] = {"Name": profile}
    if zone := values.pop("AvailabilityZone", None):
        values["Placement"] = {"AvailabilityZone": zone}
    if data := values.get("UserData"):
        values["UserData"] = b64decode(data)  # botocore encodes it again
    answer = call_service(
        "ec2", "run_instances", {**values, "MinCount": 1, "MaxCount": 1, **_tagged(properties, "instance")}
    )
    identifier = answer["Instances"][0]["InstanceId"]
    client("ec2").get_waiter("instance_running").wait(InstanceIds=[identifier], WaiterConfig=_QUICK)
    return identifier, {"InstanceId": identifier}


def _delete_instance(identifier: str, properties: Record) -> None:
    del properties
    client("ec2").terminate_instances(InstanceIds=[identifier])
    client("ec2").get_waiter("instance_terminated").wait(InstanceIds=[identifier], WaiterConfig=_QUICK)


def _create_placement_group(logical: str, properties: Record, stack: str) -> Created:
    name = generated_name(stack, logical)
    values = {key: value for key, value in properties.items() if key != TAGS}
    call_service(
        "ec2", "create_placement_group", {"GroupName": name, **values, **_tagged(properties, "placement-group")}
    )
    return name, {"GroupName": name}


TYPES: Mapping[str, ResourceType] = {
    **{
        f"AWS::EC2::SecurityGroup{direction.title()}": ResourceType(
            create=_create_rule(direction),
            delete=_delete_rule(direction),
            gone=("InvalidGroup.NotFound", "InvalidSecurityGroupRuleId.NotFound"),
            tagged=False,
        )
        for direction in ("ingress", "egress")
    },
    "AWS::EC2::FlowLog": ResourceType(
        create=_create_flow_log,
        delete=lambda identifier, _: client("ec2").delete_flow_logs(FlowLogIds=[identifier]),
        gone=("InvalidFlowLogId.NotFound",),
        change=_change_ec2_tags,
        changeable=(TAGS,),
    ),
    "AWS::EC2::EIP": ResourceType(
        create=_create_address, delete=_delete_address, change=_change_address_tags, changeable=(TAGS,)
    ),
    "AWS::EC2::NatGateway": ResourceType(
        create=_create_nat_gateway,
        delete=lambda identifier, _: client("ec2").delete_nat_gateway(NatGatewayId=identifier),
        gone=("NatGatewayNotFound",),
        change=_change_ec2_tags,
        changeable=(TAGS,),
    ),
    "AWS::EC2::Instance": ResourceType(
        create=_create_instance,
        delete=_delete_instance,
        gone=("InvalidInstanceID.NotFound",),
        change=_change_ec2_tags,
        changeable=(TAGS,),
    ),
    "AWS::EC2::PlacementGroup": ResourceType(
        create=_create_placement_group,
        delete=lambda identifier, _: client("ec2").delete_placement_group(GroupName=identifier),
        gone=("InvalidPlacementGroup.Unknown",),
    ),
}
