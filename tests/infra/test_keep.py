"""A bucket whose data outlive the stack has a tag, because `shoal destroy` asks the bucket, not a topology."""

from pathlib import Path

import pytest
from aws_cdk.assertions import Template

from infra import topology

TAG = {"Key": topology.TAG_KEEP, "Value": "true"}


def topology_with(keep: bool) -> topology.Topology:
    return topology.Topology.model_validate(
        {
            "name": "kept",
            "description": "x",
            "training": [{"instance_type": "g5.xlarge", "count": 1}],
            "data": {"keep": keep},
        }
    )


@pytest.mark.parametrize("keep", [True, False])
def test_only_the_data_bucket_is_tagged_and_only_when_it_is_kept(keep: bool, synthesise, tmp_path: Path) -> None:
    buckets = Template.from_stack(synthesise(topology_with(keep), tmp_path)).find_resources("AWS::S3::Bucket")
    tagged = [name for name, bucket in buckets.items() if TAG in bucket["Properties"]["Tags"]]
    assert [name.startswith("BucketsData") for name in tagged] == ([True] if keep else [])


@pytest.mark.parametrize("keep", [True, False])
def test_a_kept_bucket_goes_on_refusing_connections_without_tls(keep: bool, synthesise, tmp_path: Path) -> None:
    policies = Template.from_stack(synthesise(topology_with(keep), tmp_path)).find_resources("AWS::S3::BucketPolicy")
    retained = [name for name, policy in policies.items() if policy.get("DeletionPolicy") == "RetainExceptOnCreate"]
    assert [name.startswith("BucketsData") for name in retained] == ([True] if keep else [])
