"""Tests of the preflight rule on an existing VPC's DNS."""

from typing import Any

import boto3
import pytest

from tests.bootstrap.lifecycle.preflight import GPU, PRIMARY, findings, of


@pytest.mark.parametrize(
    ("attribute", "parts", "why"),
    [
        ("enableDnsSupport", {"training": [GPU]}, "nodes cannot find AWS services"),
        ("enableDnsHostnames", {"training": [GPU], "share": "efs"}, "EMR, EFS and interface endpoints need DNS names"),
        (
            "enableDnsHostnames",
            {"preprocessing": {"primary": PRIMARY}},
            "EMR, EFS and interface endpoints need DNS names",
        ),
        ("enableDnsHostnames", {"training": [GPU]}, None),
    ],
)
def test_a_vpc_without_dns_is_refused(
    attribute: str, parts: dict[str, Any], why: str | None, asking: boto3.Session, ec2: Any
) -> None:
    vpc = ec2.create_vpc(CidrBlock="10.4.0.0/16")["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    ec2.modify_vpc_attribute(VpcId=vpc, **{attribute[0].upper() + attribute[1:]: {"Value": False}})
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.4.1.0/24", AvailabilityZone="us-east-1b")["Subnet"]["SubnetId"]
    option = "support" if attribute == "enableDnsSupport" else "hostnames"
    wanted = of(**parts, zone="us-east-1b", network={"vpc": vpc, "subnet": subnet})
    found = [sentence for _, rule, sentence in findings(asking, wanted) if rule == "no_dns"]
    assert [str(why) in each and f"--enable-dns-{option}" in each for each in found] == [True] * bool(why)
