"""A bucket whose data may outlive the stack has a tag, because `shoal destroy` asks the bucket, not a topology."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from aws_cdk.assertions import Template

from infra import topology
from infra.stack import ShoalStack

WAYS = [(True, "true"), (None, "unfetched"), (False, None)]


@pytest.fixture(scope="module", params=WAYS, ids=str)
def kept(
    request: pytest.FixtureRequest, synthesise: Callable[..., ShoalStack], tmp_path_factory: pytest.TempPathFactory
) -> tuple[bool | None, str | None, Template]:
    """What the topology says, the tag of its data bucket, and its template."""
    keep, tag = request.param
    fields = {"name": "kept", "description": "x", "training": [{"instance_type": "g5.xlarge", "count": 1}]}
    spec = topology.Topology.model_validate({**fields, "data": {"keep": keep}})
    return keep, tag, Template.from_stack(synthesise(spec, tmp_path_factory.mktemp("out")))


def test_only_the_data_bucket_is_tagged_and_only_when_it_may_be_kept(kept: tuple[Any, str | None, Template]) -> None:
    _, tag, template = kept
    found = {
        name: [each["Value"] for each in bucket["Properties"]["Tags"] if each["Key"] == topology.TAG_KEEP]
        for name, bucket in template.find_resources("AWS::S3::Bucket").items()
    }
    assert {name.rstrip("0123456789ABCDEF"): tags for name, tags in found.items()} == {
        "BucketsData": [tag] if tag else [],
        "BucketsRaw": [],
        "BucketsLog": [],
    }


@pytest.mark.parametrize("kind", ["Bucket", "BucketPolicy"])
def test_cloudformation_leaves_such_a_bucket_which_goes_on_refusing_connections_without_tls(
    kind: str, kept: tuple[Any, str | None, Template]
) -> None:
    _, tag, template = kept
    found = template.find_resources(f"AWS::S3::{kind}")
    retained = [name for name, each in found.items() if each.get("DeletionPolicy") == "RetainExceptOnCreate"]
    assert [name.startswith("BucketsData") for name in retained] == ([True] if tag else [])


def test_the_cleanup_may_delete_no_bucket_to_keep_and_read_only_what_was_fetched(
    kept: tuple[bool | None, Any, Template],
) -> None:
    keep, _, template = kept
    (policy,) = (
        each["Properties"]["PolicyDocument"]["Statement"]
        for name, each in template.find_resources("AWS::IAM::Policy").items()
        if name.startswith("CleanupRole")
    )
    (data,) = (name for name in template.find_resources("AWS::S3::Bucket") if name.startswith("BucketsData"))

    def on(action: str) -> list[Any]:
        of = [each["Resource"] for each in policy if action in each["Action"]]
        return [one for resource in of for one in (resource if isinstance(resource, list) else [resource])]

    deleting, reading = on("s3:DeleteBucket"), [each["Fn::Join"][1] for each in on("s3:GetObject")]
    arn = {"Fn::GetAtt": [data, "Arn"]}
    assert (arn in deleting, len(deleting)) == ((False, 2) if keep else (True, 3))
    assert reading == ([[arn, "/runs_fetched/*"]] if keep is None else [])
    assert (data in json.dumps(policy)) == (keep is not True)
