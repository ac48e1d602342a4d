"""The rules for all stacks find the faults that they are for: each gets a stack with one fault."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from infra import topology
from tests.infra import invariants
from tests.infra.invariants import Resources, of_type, the
from tests.infra.templates import ResourcesOf

Fault = Callable[[Resources], Any]


@pytest.fixture(scope="module")
def sound(resources_of: ResourcesOf) -> Resources:
    return resources_of(
        network={"egress": "nat"},
        preprocessing={"primary": {"instance_type": "m5.xlarge"}},
        training=[{"instance_type": "g5.xlarge", "count": 1}],
        share="efs",
        guard={"mail": "ada@example.org"},
    )


def properties(resources: Resources, kind: str, part: str = "") -> dict[str, Any]:
    return the(resources, f"AWS::{kind}", part)[1]


def statement(resources: Resources) -> dict[str, Any]:
    found: dict[str, Any] = properties(resources, "IAM::Policy", "GuardRole")["PolicyDocument"]["Statement"][0]
    return found


def launch(resources: Resources) -> dict[str, Any]:
    found: dict[str, Any] = properties(resources, "EC2::LaunchTemplate")["LaunchTemplateData"]
    return found


ANYWHERE = {"CidrIp": "0.0.0.0/0", "IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}

FAULTS: list[tuple[str, Fault]] = [
    (
        "TrainingNodes.* in",
        lambda found: properties(found, "EC2::SecurityGroup", "TrainingNodes").update(SecurityGroupIngress=[ANYWHERE]),
    ),
    ("door lets addresses in", lambda found: found.update(door=rule(ANYWHERE))),
    (
        "NetworkExit.* public addresses",
        lambda found: properties(found, "EC2::Subnet", "Exit").update(MapPublicIpOnLaunch=True),
    ),
    ("BucketsRaw.* not encrypted", lambda found: properties(found, "S3::Bucket", "Raw").pop("BucketEncryption")),
    (
        "BucketsLog.* not encrypted",
        lambda found: properties(found, "S3::Bucket", "Log").pop("PublicAccessBlockConfiguration"),
    ),
    ("ShareFiles.* not encrypted", lambda found: properties(found, "EFS::FileSystem").update(Encrypted=False)),
    ("Training.* not encrypted", lambda found: launch(found)["BlockDeviceMappings"][0]["Ebs"].pop("Encrypted")),
    ("GuardTopic.* not encrypted", lambda found: properties(found, "SNS::Topic").pop("KmsMasterKeyId")),
    ("BucketsData.* without TLS", lambda found: found.pop(the(found, "AWS::S3::BucketPolicy", "Data")[0])),
    ("ShareFiles.* without TLS", lambda found: properties(found, "EFS::FileSystem").pop("FileSystemPolicy")),
    ("GuardTopic.* without TLS", lambda found: found.pop(the(found, "AWS::SNS::TopicPolicy")[0])),
    ("GuardRole.* allows any of", lambda found: statement(found).update(Action="s3:*")),
    (
        "GuardRole.* on anything",
        lambda found: statement(found).update(Action=["s3:GetObject", "s3:PutObject"], Resource="*"),
    ),
    ("GuardRole.* allows any of", lambda found: statement(found).pop("Action")),
    (
        "GuardRole.* has {'AdministratorAccess'}",
        lambda found: properties(found, "IAM::Role", "GuardRole").update(
            ManagedPolicyArns=[
                {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":iam::aws:policy/AdministratorAccess"]]}
            ]
        ),
    ),
    (
        "GuardRole.* may be taken by",
        lambda found: properties(found, "IAM::Role", "GuardRole")["AssumeRolePolicyDocument"]["Statement"][0].update(
            Principal={"AWS": "*"}
        ),
    ),
    ("BucketsRaw.* lacks the tags", lambda found: properties(found, "S3::Bucket", "Raw").pop("Tags")),
    ("Training.* lacks the tags", lambda found: launch(found)["TagSpecifications"][1].update(Tags=[])),
    ("Training.* without a token", lambda found: launch(found)["MetadataOptions"].update(HttpTokens="optional")),
    (
        "PreprocessingCluster.* without a token",
        lambda found: properties(found, "EMR::SecurityConfiguration").update(SecurityConfiguration={}),
    ),
    ("no guard with a clock", lambda found: found.pop(the(found, "AWS::Events::Rule")[0])),
    ("NetworkExitNATGateway.* without the guard", lambda found: freed(found, "AWS::EC2::NatGateway")),
    (
        "BucketsRaw.* outlives",
        lambda found: found[the(found, "AWS::S3::Bucket", "Raw")[0]].update(DeletionPolicy="Retain"),
    ),
    (
        "NetworkVpc.* groups of its own",
        lambda found: properties(found, "EC2::VPC")["Tags"].append(
            {"Key": "for-use-with-amazon-emr-managed-policies", "Value": "true"}
        ),
    ),
    *(
        (
            f"{part}.* does not check the source account",
            lambda found, part=part: properties(found, "IAM::Role", part)["AssumeRolePolicyDocument"]["Statement"][0][
                "Condition"
            ].pop("ArnLike"),
        )
        for part in ("PreprocessingServiceRole", "NetworkFlowsRole")
    ),
    *(
        (f"PreprocessingCluster.* {direction.lower()} on {port}", fault)
        for direction, port in (("Ingress", 9443), ("Egress", 8443))
        for fault in (
            lambda found, direction=direction, port=port: found.pop(service_rule(found, direction, port)),
            lambda found, direction=direction, port=port: started_early(found, service_rule(found, direction, port)),
        )
    ),
]


def rule(values: dict[str, Any]) -> dict[str, Any]:
    return {"Type": "AWS::EC2::SecurityGroupIngress", "Properties": {"GroupId": "sg-1", **values}}


def service_rule(resources: Resources, direction: str, port: int) -> str:
    """The first rule of the group by which EMR's service reaches a cluster, in this direction, on this port."""
    rules = of_type(resources, f"AWS::EC2::SecurityGroup{direction}")
    return next(name for name in rules if "ServiceAccess" in name and rules[name]["FromPort"] == port)


def started_early(resources: Resources, rule: str) -> None:
    """The cluster without waiting for the rule."""
    resources[the(resources, "AWS::EMR::Cluster")[0]]["DependsOn"].remove(rule)


def freed(resources: Resources, kind: str) -> None:
    """The resource without its dependencies."""
    resources[the(resources, kind)[0]] = {"Type": kind, "Properties": {"Tags": [{"Key": "k", "Value": "v"}]}}


def test_a_sound_stack_has_no_fault(sound: Resources) -> None:
    assert invariants.broken(sound, {topology.TAG_DEPLOYMENT: "mine"}) == []


@pytest.mark.parametrize(("said", "fault"), FAULTS)
def test_a_fault_is_found(said: str, fault: Fault, sound: Resources) -> None:
    found = copy.deepcopy(sound)
    fault(found)
    sentences = invariants.broken(found, {topology.TAG_DEPLOYMENT: "mine"})
    head, _, tail = said.rpartition(".* ")
    assert any(sentence.startswith(head) and tail in sentence for sentence in sentences), sentences
