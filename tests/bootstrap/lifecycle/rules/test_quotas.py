"""Tests of the preflight rules on quotas."""

from typing import Any

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shoal_local_aws.aws import EmbeddedAws
from shoal_local_aws.faults.kinds import QuotaLimit, StaysPending

from bootstrap.lifecycle.rules.quotas import needs, quota_of
from infra import topology
from tests.bootstrap.lifecycle.preflight import GPU, PRIMARY, findings, of, rules


def test_a_quota_counts_the_whole_topology_and_names_the_command_for_an_increase(
    aws: EmbeddedAws, asking: boto3.Session
) -> None:
    wanted = of(training=[GPU, {"instance_type": "g4dn.xlarge", "count": 1}], share="efs")
    with aws.faults.during(QuotaLimit(code="L-DB2E81BA", value=8)):
        found = findings(asking, wanted)
    assert rules(found) == [("error", "quota_too_low")]
    assert "is 8, but this topology needs 12;" in found[0][2]
    assert found[0][2].endswith("--service-code ec2 --quota-code L-DB2E81BA --desired-value 12 --region us-east-1")


def test_only_instances_of_other_deployments_are_subtracted_from_a_quota(
    aws: EmbeddedAws, asking: boto3.Session, ec2: Any
) -> None:
    def start(deployment: str) -> str:
        tags = [{"Key": topology.TAG_DEPLOYMENT, "Value": deployment}]
        started = ec2.run_instances(
            ImageId="ami-12345678",
            InstanceType="g5.xlarge",
            MinCount=1,
            MaxCount=1,
            TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
        )
        return str(started["Instances"][0]["InstanceId"])

    instances = [start("mine"), start("theirs")]
    with aws.faults.during(QuotaLimit(code="L-DB2E81BA", value=11)):
        found = findings(asking, of(training=[GPU], share="efs"))
    ec2.terminate_instances(InstanceIds=instances)
    ((_, _, sentence),) = found
    assert "is 11 (4 in use), but this topology needs 8;" in sentence


def test_starting_instances_count_against_a_quota(aws: EmbeddedAws, asking: boto3.Session, ec2: Any) -> None:
    with aws.faults.during(StaysPending(), QuotaLimit(code="L-DB2E81BA", value=11)):
        started = ec2.run_instances(ImageId="ami-12345678", InstanceType="g5.xlarge", MinCount=1, MaxCount=1)
        found = findings(asking, of(training=[GPU], share="efs"))
        ec2.terminate_instances(InstanceIds=[started["Instances"][0]["InstanceId"]])
    assert "is 11 (4 in use)" in found[0][2]


def test_spot_has_a_separate_quota(aws: EmbeddedAws, asking: boto3.Session) -> None:
    with aws.faults.during(QuotaLimit(code="L-3819A6DF", value=0)):
        assert findings(asking, of(training=[GPU], share="efs")) == []
        found = findings(asking, of(training=[{**GPU, "market": "spot"}], share="efs"))
    assert [rule for _, rule, _ in found] == ["quota_too_low"]


def test_nodes_of_several_types_count_as_the_largest() -> None:
    several = {"instance_types": ["g4dn.xlarge", "g5.4xlarge", "g6.2xlarge"], "count": 2, "market": "spot"}
    assert {quota.code: vcpus for quota, vcpus in needs(of(training=[several])).items()} == {"L-3819A6DF": 32}


def test_readers_count_against_the_quota_of_standard_instances() -> None:
    readers = {"role": "read", "instance_type": "m5.2xlarge", "count": 3, "market": "spot"}
    found = {quota.code: vcpus for quota, vcpus in needs(of(training=[GPU, readers], share="nfs")).items()}
    assert found == {"L-DB2E81BA": 8, "L-34B43A08": 24}


@pytest.mark.parametrize(
    ("name", "spot", "code"),
    [
        ("m5.xlarge", False, "L-1216C47A"),
        ("r7g.xlarge", True, "L-34B43A08"),
        ("im4gn.xlarge", False, "L-1216C47A"),
        ("g4dn.xlarge", False, "L-DB2E81BA"),
        ("gr6.4xlarge", False, "L-DB2E81BA"),
        ("vt1.3xlarge", True, "L-3819A6DF"),
        ("p3.2xlarge", False, "L-417A185B"),
        ("p5.48xlarge", False, "L-417A185B"),
        ("p4d.24xlarge", True, "L-7212CCBC"),
        ("p5en.48xlarge", True, "L-C4BD4855"),
        ("p6-b200.48xlarge", False, "L-417A185B"),
        ("inf2.xlarge", False, None),
        ("trn1.2xlarge", False, None),
        ("x1.16xlarge", False, None),
    ],
)
def test_a_type_counts_against_its_familys_quota(name: str, spot: bool, code: str | None) -> None:
    quota = quota_of(name, spot=spot)
    assert (quota.code if quota else None) == code


@given(st.integers(1, 50), st.integers(1, 50), st.booleans())
def test_the_needed_vcpus_are_the_sum_over_all_nodes(workers: int, nodes: int, spot: bool) -> None:
    market = "spot" if spot else "on-demand"
    wanted = of(
        preprocessing={"primary": PRIMARY, "core": {"instance_type": "m5.2xlarge", "count": workers}},
        training=[{"instance_type": "g5.xlarge", "count": nodes, "market": market}],
    )
    found = {quota.code: vcpus for quota, vcpus in needs(wanted).items()}
    assert found == {"L-1216C47A": 4 + 8 * workers, "L-3819A6DF" if spot else "L-DB2E81BA": 4 * nodes}
