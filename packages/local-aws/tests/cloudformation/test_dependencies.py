from pathlib import Path

import pytest
import yaml
from botocore.exceptions import ClientError
from tests.local_aws.resources import ROLES
from tests.local_aws.waiting import until

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


def test_a_file_system_is_mounted_in_the_zones_of_its_subnets(network, client):
    targets = client("efs").describe_mount_targets(FileSystemId=network("Share"))["MountTargets"]
    assert {each["AvailabilityZoneName"] for each in targets} == {"us-east-1a", "us-east-1b"}


def test_foreign_resources_in_a_subnet_block_the_deletion_of_its_stack(stacks, client):
    stacks.create("stuck", {name: NETWORK[name] for name in ("Vpc", "One")})
    ec2, machine = client("ec2"), {"ImageId": "ami-0a1b2c3d4e5f60718", "InstanceType": "m5.large"}
    place = stacks.physical("stuck", "One")
    (made,) = ec2.run_instances(**machine, MinCount=1, MaxCount=1, SubnetId=place)["Instances"]
    assert stacks.delete("stuck") == "DELETE_FAILED"
    assert "has dependencies" in stacks.reasons("stuck")
    ec2.terminate_instances(InstanceIds=[made["InstanceId"]])
    assert stacks.delete("stuck") == "DELETE_COMPLETE"


def test_a_cluster_blocks_the_deletion_of_its_subnet_and_groups(stacks, client):
    stacks.create("clustered", {name: NETWORK[name] for name in ("Vpc", "One", "Group")})
    place, group = stacks.physical("clustered", "One"), stacks.physical("clustered", "Group")
    emr, ec2 = client("emr"), client("ec2")
    instances = {"KeepJobFlowAliveWhenNoSteps": True, "MasterInstanceType": "m5.xlarge", "InstanceCount": 1}
    network = {"Ec2SubnetId": place, "ServiceAccessSecurityGroup": group}
    cluster = emr.run_job_flow(Name="cluster", **ROLES, Instances={**instances, **network})["JobFlowId"]
    attributes = emr.describe_cluster(ClusterId=cluster)["Cluster"]["Ec2InstanceAttributes"]
    assert attributes["Ec2AvailabilityZone"] == "us-east-1a"
    for delete in (lambda: ec2.delete_subnet(SubnetId=place), lambda: ec2.delete_security_group(GroupId=group)):
        with pytest.raises(ClientError, match="DependencyViolation"):
            delete()
    emr.terminate_job_flows(JobFlowIds=[cluster])
    until(lambda: emr.describe_cluster(ClusterId=cluster)["Cluster"]["Status"]["State"].startswith("TERMINATED"))
    assert stacks.delete("clustered") == "DELETE_COMPLETE"


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
