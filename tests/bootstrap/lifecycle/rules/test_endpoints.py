"""What the preflight says of an existing VPC's DNS and endpoints."""

from collections.abc import Iterator, Sequence
from typing import Any

import boto3
import pytest

from embedded.aws import EmbeddedAws
from embedded.faults.kinds import Denied, EndpointState
from infra.topology import TAG_DEPLOYMENT
from tests.bootstrap.lifecycle.preflight import GPU, PRIMARY, findings, of

SERVICES = ("ssm", "ssmmessages")


class Network:
    """A VPC of the user's with a private subnet, S3's gateway endpoint, and DNS."""

    def __init__(self, asking: boto3.Session) -> None:
        self.asking, self.ec2 = asking, asking.client("ec2")
        self.vpc = self.ec2.create_vpc(CidrBlock="10.4.0.0/16")["Vpc"]["VpcId"]
        self.ec2.modify_vpc_attribute(VpcId=self.vpc, EnableDnsHostnames={"Value": True})
        made = self.ec2.create_subnet(VpcId=self.vpc, CidrBlock="10.4.1.0/24", AvailabilityZone="us-east-1b")
        self.subnet = made["Subnet"]["SubnetId"]
        self.table = self.ec2.create_route_table(VpcId=self.vpc)["RouteTable"]["RouteTableId"]
        self.ec2.associate_route_table(RouteTableId=self.table, SubnetId=self.subnet)
        self.gateway = self.endpoint("s3", RouteTableIds=[self.table])
        self.group = self.security_group("endpoints")

    def endpoint(self, service: str, **more: Any) -> str:
        name = f"com.amazonaws.us-east-1.{service}"
        return str(
            self.ec2.create_vpc_endpoint(VpcId=self.vpc, ServiceName=name, **more)["VpcEndpoint"]["VpcEndpointId"]
        )

    def interfaces(self, **more: Any) -> list[str]:
        options = {"VpcEndpointType": "Interface", "SubnetIds": [self.subnet], "SecurityGroupIds": [self.group], **more}
        return [self.endpoint(service, **options) for service in SERVICES]

    def security_group(self, name: str) -> str:
        return str(self.ec2.create_security_group(GroupName=name, Description="x", VpcId=self.vpc)["GroupId"])

    def admit(self, protocol: str = "tcp", **source: Any) -> None:
        ports = {"FromPort": 400, "ToPort": 443} if protocol == "tcp" else {}
        rule = {"IpProtocol": protocol, **ports, **source}
        self.ec2.authorize_security_group_ingress(GroupId=self.group, IpPermissions=[rule])

    def findings(self, *, shell: bool = True, **parts: Any) -> list[tuple[str, str, str]]:
        network = {"vpc": self.vpc, "subnet": self.subnet, "shell": shell}
        return findings(self.asking, of(**(parts or {"training": [GPU]}), zone="us-east-1b", network=network))

    def end(self) -> None:
        found = self.ec2.describe_vpc_endpoints(Filters=[{"Name": "vpc-id", "Values": [self.vpc]}])["VpcEndpoints"]
        self.ec2.delete_vpc_endpoints(VpcEndpointIds=[each["VpcEndpointId"] for each in found])


@pytest.fixture
def network(asking: boto3.Session) -> Iterator[Network]:
    made = Network(asking)
    yield made
    made.end()


@pytest.mark.parametrize(
    ("protocol", "cidrs"), [("tcp", ["10.4.1.0/24"]), ("tcp", ["10.9.0.0/16", "10.0.0.0/8"]), ("-1", ["0.0.0.0/0"])]
)
def test_endpoints_that_admit_the_subnet_are_used(protocol: str, cidrs: Sequence[str], network: Network) -> None:
    network.interfaces()
    network.admit(protocol, IpRanges=[{"CidrIp": cidr} for cidr in cidrs])
    assert network.findings() == []


def test_endpoints_that_admit_the_groups_of_an_earlier_deployment_are_used(network: Network) -> None:
    network.interfaces()
    nodes = network.security_group("nodes")
    network.ec2.create_tags(Resources=[nodes], Tags=[{"Key": TAG_DEPLOYMENT, "Value": "mine"}])
    network.admit(UserIdGroupPairs=[{"GroupId": nodes}])
    assert network.findings() == []


def test_an_endpoint_that_does_not_admit_the_subnet_is_refused(network: Network) -> None:
    first, _ = network.interfaces()
    network.admit(IpRanges=[{"CidrIp": "10.4.1.0/25"}])
    found = network.findings()
    assert [(level, rule) for level, rule, _ in found] == [("error", "endpoint_unusable")] * 2
    assert f"no security group of {first} " in found[0][2]
    assert f"--group-id {network.group} --protocol tcp --port 443 --cidr 10.4.1.0/24" in found[0][2]
    assert network.findings(shell=False) == []


def test_an_endpoint_that_is_not_available_is_refused(network: Network, aws: EmbeddedAws) -> None:
    network.interfaces()
    network.admit(IpRanges=[{"CidrIp": "10.4.0.0/16"}])
    with aws.faults.during(EndpointState(service="s3", state="pending")):
        ((level, rule, sentence),) = network.findings(shell=False)
    assert (level, rule) == ("error", "endpoint_unusable")
    assert f"{network.gateway} (com.amazonaws.us-east-1.s3) is pending" in sentence
    with aws.faults.during(EndpointState(service="ssm", state="pendingAcceptance")):
        ((_, _, sentence),) = network.findings()
    assert "(com.amazonaws.us-east-1.ssm) is pendingAcceptance" in sentence


def test_an_endpoint_without_private_dns_is_refused_unless_a_route_leads_out(network: Network) -> None:
    first, second = network.interfaces(PrivateDnsEnabled=False)
    found = network.findings()
    assert [
        f"--vpc-endpoint-id {name} --private-dns-enabled" in each[2]
        for name, each in zip((first, second), found, strict=True)
    ] == [True] * 2
    nat = {"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-0123456789abcdef0"}
    network.ec2.create_route(RouteTableId=network.table, **nat)
    assert network.findings() == []


@pytest.mark.parametrize(
    ("attribute", "parts", "why"),
    [
        ("enableDnsSupport", {"training": [GPU]}, "nodes find no service of AWS"),
        ("enableDnsHostnames", {"training": [GPU], "share": "efs"}, "EMR, EFS and interface endpoints need it"),
        ("enableDnsHostnames", {"preprocessing": {"primary": PRIMARY}}, "EMR, EFS and interface endpoints need it"),
        ("enableDnsHostnames", {"training": [GPU]}, None),
    ],
)
def test_a_vpc_without_dns_is_refused(attribute: str, parts: dict[str, Any], why: str | None, network: Network) -> None:
    network.ec2.modify_vpc_attribute(VpcId=network.vpc, **{attribute[0].upper() + attribute[1:]: {"Value": False}})
    option = "support" if attribute == "enableDnsSupport" else "hostnames"
    found = [sentence for _, rule, sentence in network.findings(shell=False, **parts) if rule == "no_dns"]
    assert [str(why) in each and f"--enable-dns-{option}" in each for each in found] == [True] * bool(why)


def test_security_groups_that_may_not_be_read_are_a_warning(network: Network, aws: EmbeddedAws) -> None:
    network.interfaces()
    with aws.faults.during(Denied(service="ec2", operation="DescribeSecurityGroups")):
        ((level, rule, sentence),) = network.findings()
    assert (level, rule) == ("warning", "endpoint_unusable")
    assert sentence.startswith("Whether the existing VPC's endpoints let nodes in could not be checked: ")
