"""A bucket whose data may outlive the stack has a tag, because `shoal destroy` asks the bucket, not a topology."""

import json
from typing import Any

import pytest

from infra import topology
from tests.infra.invariants import Resources, of_type, the
from tests.infra.templates import ResourcesOf

WAYS = [(True, "true"), (None, "unfetched"), (False, None)]


@pytest.fixture(scope="module", params=WAYS, ids=str)
def kept(request: pytest.FixtureRequest, resources_of: ResourcesOf) -> tuple[bool | None, str | None, Resources]:
    """What the topology says, the tag of its data bucket, and its resources."""
    keep, tag = request.param
    return keep, tag, resources_of(training=[{"instance_type": "g5.xlarge", "count": 1}], data={"keep": keep})


def test_only_the_data_bucket_is_tagged_and_only_when_it_may_be_kept(kept: tuple[Any, str | None, Resources]) -> None:
    _, tag, resources = kept
    found = {
        name: [each["Value"] for each in bucket["Tags"] if each["Key"] == topology.TAG_KEEP]
        for name, bucket in of_type(resources, "AWS::S3::Bucket").items()
    }
    assert {name.rstrip("0123456789ABCDEF"): tags for name, tags in found.items()} == {
        "BucketsData": [tag] if tag else [],
        "BucketsRaw": [],
        "BucketsLog": [],
    }


@pytest.mark.parametrize("kind", ["Bucket", "BucketPolicy"])
def test_cloudformation_leaves_such_a_bucket_which_goes_on_refusing_connections_without_tls(
    kind: str, kept: tuple[Any, str | None, Resources]
) -> None:
    _, tag, resources = kept
    found = of_type(resources, f"AWS::S3::{kind}")
    retained = [name for name in found if resources[name].get("DeletionPolicy") == "RetainExceptOnCreate"]
    assert [name.startswith("BucketsData") for name in retained] == ([True] if tag else [])


def test_the_cleanup_may_delete_no_bucket_to_keep_and_read_only_what_was_fetched(
    kept: tuple[bool | None, Any, Resources],
) -> None:
    keep, _, resources = kept
    policy = the(resources, "AWS::IAM::Policy", "CleanupRole")[1]["PolicyDocument"]["Statement"]
    (data,) = (name for name in of_type(resources, "AWS::S3::Bucket") if name.startswith("BucketsData"))

    def on(action: str) -> list[Any]:
        of = [each["Resource"] for each in policy if action in each["Action"]]
        return [one for resource in of for one in (resource if isinstance(resource, list) else [resource])]

    deleting, reading = on("s3:DeleteBucket"), [each["Fn::Join"][1] for each in on("s3:GetObject")]
    arn = {"Fn::GetAtt": [data, "Arn"]}
    assert (arn in deleting, len(deleting)) == ((False, 2) if keep else (True, 3))
    assert reading == ([[arn, "/runs_fetched/*"]] if keep is None else [])
    assert (data in json.dumps(policy)) == (keep is not True)
