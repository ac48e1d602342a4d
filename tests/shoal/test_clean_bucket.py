"""Buckets that are deleted with their stack, in somebody else's stack."""

import boto3
import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Template
from constructs import Construct
from shoal_local_aws.aws import EmbeddedAws

from infra.handlers import cleanup
from shoal.cdk import CleanBucket


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
