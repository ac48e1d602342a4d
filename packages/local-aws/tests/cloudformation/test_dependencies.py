from pathlib import Path

import pytest
import yaml
from botocore.exceptions import ClientError

NETWORK = yaml.safe_load(Path(__file__).with_name("network.yaml").read_text("utf-8"))


@pytest.fixture(scope="module")
def network(stacks):
    assert stacks.create("network", NETWORK) == "CREATE_COMPLETE", stacks.reasons("network")
    yield lambda name: stacks.physical("network", name)
    assert stacks.delete("network") == "DELETE_COMPLETE", stacks.reasons("network")


@pytest.mark.parametrize(
    ("operation", "named", "said"),
    [
        ("ec2 delete_vpc", {"VpcId": "Vpc"}, "DependencyViolation"),
        *(("ec2 delete_subnet", {"SubnetId": name}, "DependencyViolation") for name in ("One", "Two", "Public")),
        ("ec2 delete_route_table", {"RouteTableId": "Table"}, "DependencyViolation"),
        ("ec2 delete_internet_gateway", {"InternetGatewayId": "Internet"}, "DependencyViolation"),
        ("ec2 delete_security_group", {"GroupId": "Group"}, "DependencyViolation"),
        ("ec2 detach_internet_gateway", {"InternetGatewayId": "Internet", "VpcId": "Vpc"}, "mapped public address"),
        ("ec2 release_address", {"AllocationId": "Address"}, r"InvalidIPAddress\.InUse"),
        ("efs delete_file_system", {"FileSystemId": "Share"}, "FileSystemInUse"),
    ],
)
def test_resources_in_use_are_not_deleted(operation, named, said, network, client):
    service, name = operation.split()
    values = {key: network(each) for key, each in named.items()}
    if "AllocationId" in values:
        (address,) = client("ec2").describe_addresses(PublicIps=[values["AllocationId"]])["Addresses"]
        values = {"AllocationId": address["AllocationId"]}
    with pytest.raises(ClientError, match=said):
        getattr(client(service), name)(**values)


def test_a_vpc_is_not_deleted_before_its_contents(client):
    ec2 = client("ec2")
    network = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    table = ec2.create_route_table(VpcId=network)["RouteTable"]["RouteTableId"]
    endpoint = ec2.create_vpc_endpoint(VpcId=network, ServiceName="com.amazonaws.us-east-1.s3")["VpcEndpoint"]
    for delete in (
        lambda: ec2.delete_route_table(RouteTableId=table),
        lambda: ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint["VpcEndpointId"]]),
    ):
        with pytest.raises(ClientError, match="DependencyViolation"):
            ec2.delete_vpc(VpcId=network)
        delete()
    ec2.delete_vpc(VpcId=network)


def test_a_rule_is_not_deleted_before_its_targets(client):
    events = client("events")
    events.put_rule(Name="rule", ScheduleExpression="rate(5 minutes)")
    function = "arn:aws:lambda:us-east-1:000000000000:function:any"
    events.put_targets(Rule="rule", Targets=[{"Id": "1", "Arn": function}])
    with pytest.raises(ClientError, match="has targets"):
        events.delete_rule(Name="rule")
    events.remove_targets(Rule="rule", Ids=["1"])
    events.delete_rule(Name="rule")
