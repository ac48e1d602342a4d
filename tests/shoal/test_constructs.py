"""The constructs of `shoal.cdk` in somebody else's stack: what they refuse, and that nothing of them stays."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Annotations, Match, Template
from constructs import Construct

import shoal
from embedded.aws import EmbeddedAws
from infra.handlers import cleanup
from shoal.cdk import CleanBucket, EmrCluster, EmrNodes, GpuNodes
from tests.infra.invariants import needs
from tests.shoal.outside import EXAMPLES, run


def network(stack: Stack, kind: ec2.SubnetType = ec2.SubnetType.PRIVATE_ISOLATED) -> ec2.Vpc:
    subnets = [ec2.SubnetConfiguration(name="Nodes", subnet_type=kind)]
    return ec2.Vpc(stack, "Vpc", max_azs=2, nat_gateways=0, subnet_configuration=subnets)


def nodes(**options: Any) -> Callable[[Stack], Construct]:
    return lambda stack: GpuNodes(stack, "Nodes", vpc=network(stack), **options)


def cluster(kind: ec2.SubnetType = ec2.SubnetType.PRIVATE_ISOLATED, **options: Any) -> Callable[[Stack], Construct]:
    return lambda stack: EmrCluster(stack, "Cut", vpc=network(stack, kind), log=CleanBucket(stack, "Log"), **options)


@pytest.mark.parametrize(
    ("makes", "said"),
    [
        (nodes(instance_type="m5.xlarge"), r"GpuNodes: instance_type: 'm5\.xlarge' has no GPU to train on; take "),
        (nodes(instance_type="g5.xlarg"), r"GpuNodes: instance_type: .*g5\.xlarge"),
        (nodes(instance_type="g5.xlarge", count=0), r"GpuNodes: count: "),
        (nodes(instance_type="g5.xlarge", market="cheap"), r"GpuNodes: market: "),
        (cluster(primary="g3.4xlarge2"), r"EmrCluster: primary\.instance_type: "),
        (cluster(core=EmrNodes(instance_type="m6g.xlarge")), r"EmrCluster: core\.instance_type: .* same architecture"),
        (cluster(task=EmrNodes(instance_type="m5.xlarge")), r"EmrCluster: task: there is no `core`"),
        (cluster(release="emr-5.36.0"), r"EmrCluster: release: "),
        (cluster(idle_minutes=1), r"EmrCluster: idle_minutes: "),
        (cluster(ec2.SubnetType.PUBLIC), r"EmrCluster: Cut: the network has no private subnet"),
    ],
)
def test_what_aws_would_refuse_is_named_when_the_stack_is_made(makes: Callable[[Stack], Construct], said: str) -> None:
    with pytest.raises(shoal.ShoalError, match=said):
        makes(Stack(App(), "Speech"))


@pytest.mark.parametrize("option", ["removal_policy", "auto_delete_objects"])
def test_a_clean_bucket_is_deleted_with_its_stack_and_nothing_says_otherwise(option: str) -> None:
    with pytest.raises(TypeError, match=f"is deleted with its stack: leave out {option}"):
        CleanBucket(Stack(App(), "Speech"), "Bucket", **{option: None})


def test_buckets_of_one_name_in_two_parts_of_a_stack_are_emptied_after_their_own_writers() -> None:
    stack = Stack(App(), "Speech")
    for part in ("Early", "Late"):
        scope = Construct(stack, part)
        CleanBucket(scope, "Log", versioned=True).written_by(sqs.Queue(scope, "Writer"))
    resources = Template.from_stack(stack).to_json()["Resources"]
    for part in ("Early", "Late"):
        (bucket, policy, writer) = (
            next(name for name, each in resources.items() if name.startswith(part) and each["Type"] == kind)
            for kind in ("AWS::S3::Bucket", "AWS::S3::BucketPolicy", "AWS::SQS::Queue")
        )
        (emptied,) = resources[writer]["DependsOn"]
        assert resources[policy]["DependsOn"] == [emptied]
        assert resources[emptied]["Type"] == "Custom::Cleanup"
        assert resources[emptied]["Properties"]["Bucket"] == {"Ref": bucket}
        assert resources[bucket]["DeletionPolicy"] == "Delete"


def test_nodes_may_scale_their_own_group_and_their_network_is_there_before() -> None:
    stack = Stack(App(), "Speech")
    nodes = GpuNodes(stack, "fast", vpc=network(stack), instance_type="g5.xlarge", started=True)
    nodes.allow_scaling()
    resources = Template.from_stack(stack).to_json()["Resources"]
    (group,) = (name for name, each in resources.items() if each["Type"] == "AWS::AutoScaling::AutoScalingGroup")
    needed = needs(resources, group)
    assert group not in needed
    (policy,) = (each for name, each in resources.items() if name.startswith("fastScaling"))
    assert {"Ref": group} in policy["Properties"]["PolicyDocument"]["Statement"][0]["Resource"]["Fn::Join"][1]
    assert {each for each in resources if each.startswith("VpcNodesSubnet1")} <= needed
    assert resources[group]["Properties"]["DesiredCapacity"] == "1"


def test_a_subnet_that_exists_needs_emrs_tag() -> None:
    stack = Stack(App(), "Speech")
    vpc = ec2.Vpc.from_vpc_attributes(
        stack,
        "Theirs",
        vpc_id="vpc-0a1b2c3d",
        availability_zones=["us-east-1a"],
        private_subnet_ids=["subnet-0a1b2c3d"],
    )
    EmrCluster(stack, "Cut", vpc=vpc, log=CleanBucket(stack, "Log"))
    Annotations.from_stack(stack).has_warning("*", Match.string_like_regexp("aws ec2 create-tags --resources SUBNET"))


def test_a_bucket_that_the_stack_keeps_as_another_construct_keeps_its_objects(aws: EmbeddedAws) -> None:
    s3 = boto3.client("s3")
    for bucket, tags in (
        ("kept", []),
        ("other", [{"Key": "team", "Value": "x"}]),
        ("clean", [{"Key": "shoal:clean", "Value": "true"}]),
    ):
        s3.create_bucket(Bucket=bucket)
        if tags:
            s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": tags})
        s3.put_object(Bucket=bucket, Key="recording", Body=b"one")
        cleanup.clean({"Bucket": bucket, "Tag": "shoal:clean"}, lambda: 10**6)
    cleanup.clean({"Bucket": "gone", "Tag": "shoal:clean"}, lambda: 10**6)
    assert {each["Name"] for each in s3.list_buckets()["Buckets"]} >= {"kept", "other"}
    assert "clean" not in {each["Name"] for each in s3.list_buckets()["Buckets"]}
    assert s3.get_object(Bucket="kept", Key="recording")["Body"].read() == b"one"


@pytest.mark.soak
def test_the_examples_stack_leaves_nothing(tmp_path: Path, shoal_aws: boto3.Session) -> None:
    app = f"{sys.executable} {EXAMPLES / 'clusters_of_ones_own.py'}"

    cdk = functools.partial(run, tmp_path, "cdk")
    cdk("bootstrap", "aws://000000000000/us-east-1")
    cdk("deploy", "--app", app, "--require-approval", "never")
    cloudformation, s3, emr = (shoal_aws.client(each) for each in ("cloudformation", "s3", "emr"))
    (stack,) = cloudformation.describe_stacks(StackName="Speech")["Stacks"]
    bucket = next(each["OutputValue"] for each in stack["Outputs"] if each["OutputKey"] == "Bucket")
    for text in (b"one", b"two"):
        s3.put_object(Bucket=bucket, Key="a/recording", Body=text)
    s3.delete_object(Bucket=bucket, Key="a/recording")
    s3.create_multipart_upload(Bucket=bucket, Key="a/part")
    (running,) = emr.list_clusters(ClusterStates=["STARTING", "BOOTSTRAPPING", "RUNNING", "WAITING"])["Clusters"]
    assert running["Name"] == "Speech-Spark"
    groups = shoal_aws.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    assert sorted((each["DesiredCapacity"], each["MaxSize"]) for each in groups) == [(0, 2), (0, 4)]
    cdk("destroy", "--app", app, "--force")
    assert shoal.sweep(stack="Speech", session=shoal_aws) == []
    with pytest.raises(s3.exceptions.ClientError, match="404"):
        s3.head_bucket(Bucket=bucket)
