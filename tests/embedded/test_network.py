"""Filters and security groups, where they are as strict as EC2's."""

import pytest
from botocore.exceptions import ClientError


@pytest.fixture(scope="module")
def made(client):
    """Two of everything, one of each with a tag and in a VPC of its own."""
    ec2 = client("ec2")
    found = {}
    for name in ("mine", "other"):
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
        interface = ec2.create_network_interface(SubnetId=subnet)["NetworkInterface"]["NetworkInterfaceId"]
        endpoint = ec2.create_vpc_endpoint(VpcId=vpc, ServiceName="com.amazonaws.us-east-1.s3")["VpcEndpoint"]
        address = ec2.allocate_address(Domain="vpc")["AllocationId"]
        instance = ec2.run_instances(ImageId="ami-1", MinCount=1, MaxCount=1, SubnetId=subnet)["Instances"][0]
        ids = [interface, endpoint["VpcEndpointId"], address, instance["InstanceId"]]
        ec2.create_tags(Resources=ids, Tags=[{"Key": "owner", "Value": name}])
        found[name] = {"vpc": vpc, "ids": ids}
    return found


def listed(client, **arguments) -> list[str]:
    ec2 = client("ec2")
    instances = ec2.describe_instances(**arguments)["Reservations"]
    return [
        *[entry["NetworkInterfaceId"] for entry in ec2.describe_network_interfaces(**arguments)["NetworkInterfaces"]],
        *[entry["VpcEndpointId"] for entry in ec2.describe_vpc_endpoints(**arguments)["VpcEndpoints"]],
        *[entry["AllocationId"] for entry in ec2.describe_addresses(**arguments)["Addresses"]],
        *[instance["InstanceId"] for entry in instances for instance in entry["Instances"]],
    ]


def test_a_tag_finds_what_bears_it_and_nothing_else(client, made):
    assert listed(client, Filters=[{"Name": "tag:owner", "Values": ["mine"]}]) == made["mine"]["ids"]
    assert listed(client, Filters=[{"Name": "tag:owner", "Values": ["nobody"]}]) == []


def test_a_vpc_finds_what_is_in_it(client, made):
    ec2 = client("ec2")
    filters = [{"Name": "vpc-id", "Values": [made["other"]["vpc"]]}]
    found = ec2.describe_network_interfaces(Filters=filters)["NetworkInterfaces"]
    assert [entry["NetworkInterfaceId"] for entry in found] == made["other"]["ids"][:1]


def test_a_state_still_filters_beside_a_tag(client, made):
    filters = [
        {"Name": "tag:owner", "Values": ["mine"]},
        {"Name": "instance-state-name", "Values": ["stopped"]},
    ]
    assert client("ec2").describe_instances(Filters=filters)["Reservations"] == []


def test_a_filter_that_nobody_plays_is_refused(client, made):
    with pytest.raises(ClientError, match="does not play filter 'colour'"):
        client("ec2").describe_addresses(Filters=[{"Name": "colour", "Values": ["red"]}])


def test_a_rule_with_two_sources_is_two_rules_that_can_be_revoked_apart(client):
    ec2 = client("ec2")
    group = ec2.create_security_group(GroupName="sources", Description="tests")["GroupId"]
    ranges = [{"CidrIp": "10.0.0.0/24"}, {"CidrIp": "10.0.1.0/24"}]
    ports = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[{**ports, "IpRanges": ranges}])
    ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=[{**ports, "IpRanges": ranges[:1]}])
    left = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["IpPermissions"]
    assert [permission["IpRanges"] for permission in left] == [ranges[1:]]
