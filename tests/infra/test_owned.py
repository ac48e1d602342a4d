"""What a topology brings of its user's account: a KMS key, images, a permissions boundary, reserved capacity."""

from typing import Any

import pytest

from infra import cost, topology
from infra.preflight import offline
from tests.infra import invariants
from tests.infra.invariants import Resources, as_list, of_type, the
from tests.infra.templates import ResourcesOf, Templates

KEY = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
BOUNDARY = "arn:aws:iam::111122223333:policy/boundary"
IMAGE, OTHER_IMAGE, RESERVATION = "ami-0a1b2c3d4e5f60718", "ami-1a1b2c3d4e5f60718", "cr-0a1b2c3d4e5f60718"
BLOCK = {"instance_type": "p5.48xlarge", "count": 2, "market": "capacity-block", "reservation": RESERVATION}


def of(**fields: Any) -> topology.Topology:
    cluster = {"primary": {"instance_type": "m5.xlarge"}, "image": OTHER_IMAGE}
    group = {"instance_type": "g5.xlarge", "count": 2, "image": IMAGE}
    given = {"zone": "us-east-1b", "preprocessing": cluster, "training": [group], "share": "efs", **fields}
    return topology.Topology.model_validate({"name": "mine", "description": "x", **given})


@pytest.fixture(scope="module")
def resources_of(templates: Templates) -> ResourcesOf:
    return lambda **fields: templates.resources(of(**fields))


def template_data(resources: Resources) -> dict[str, Any]:
    return dict(the(resources, "AWS::EC2::LaunchTemplate")[1]["LaunchTemplateData"])


def test_the_key_encrypts_volumes_buckets_and_share_and_those_who_use_these_may_use_it(
    resources_of: ResourcesOf,
) -> None:
    resources = resources_of(kms_key=KEY)
    for bucket in of_type(resources, "AWS::S3::Bucket").values():
        (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert rule["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}
        assert rule["BucketKeyEnabled"] is True
    assert the(resources, "AWS::EFS::FileSystem")[1]["KmsKeyId"] == KEY
    (disk,) = template_data(resources)["BlockDeviceMappings"]
    assert disk["Ebs"]["KmsKeyId"] == KEY
    encryption = the(resources, "AWS::EMR::SecurityConfiguration")[1]["SecurityConfiguration"]
    at_rest = encryption["EncryptionConfiguration"]["AtRestEncryptionConfiguration"]
    assert at_rest["S3EncryptionConfiguration"] == {"EncryptionMode": "SSE-KMS", "AwsKmsKey": KEY}
    assert at_rest["LocalDiskEncryptionConfiguration"] == {
        "EncryptionKeyProviderType": "AwsKms",
        "AwsKmsKey": KEY,
        "EnableEbsEncryption": True,
    }
    allowed = {
        name
        for name, policy in of_type(resources, "AWS::IAM::Policy").items()
        for statement in policy["PolicyDocument"]["Statement"]
        if "kms:Decrypt" in as_list(statement["Action"]) and KEY in as_list(statement["Resource"])
    }
    for role in ("PreprocessingNodeRole", "PreprocessingServiceRole", "TrainingNodeRole", "GuardRole", "CleanupRole"):
        assert any(name.startswith(role) for name in allowed), role
    assert invariants.broken(resources, {topology.TAG_DEPLOYMENT: "mine"}) == []


def test_without_a_key_no_role_may_use_one_but_that_of_the_assets(resources_of: ResourcesOf) -> None:
    resources = resources_of()
    assert "KmsKeyId" not in the(resources, "AWS::EFS::FileSystem")[1]
    for policy in of_type(resources, "AWS::IAM::Policy").values():
        for statement in policy["PolicyDocument"]["Statement"]:
            if any(action.startswith("kms:") for action in as_list(statement["Action"])):
                assert "kms:ViaService" in statement["Condition"]["StringEquals"]


def test_the_boundary_limits_every_role(resources_of: ResourcesOf) -> None:
    roles = of_type(resources_of(permissions_boundary=BOUNDARY), "AWS::IAM::Role")
    assert {role["PermissionsBoundary"] for role in roles.values()} == {BOUNDARY}


def test_nodes_boot_from_the_users_images(resources_of: ResourcesOf) -> None:
    resources = resources_of()
    assert template_data(resources)["ImageId"] == IMAGE
    assert the(resources, "AWS::EMR::Cluster")[1]["CustomAmiId"] == OTHER_IMAGE


def test_what_an_image_of_the_users_contains_is_not_judged() -> None:
    groups = [{"instance_type": kind, "count": 1} for kind in ("g5.xlarge", "p6-b300.48xlarge")]
    own = of(training=[{**group, "image": IMAGE} for group in groups])
    assert "image_too_new" not in {each.rule for each in offline(own)}


def test_nodes_of_a_capacity_block_start_in_it_and_in_no_place_of_the_stacks(
    resources_of: ResourcesOf,
) -> None:
    resources = resources_of(training=[BLOCK])
    data = template_data(resources)
    assert not of_type(resources, "AWS::EC2::PlacementGroup")
    assert data["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    assert data["CapacityReservationSpecification"] == {
        "CapacityReservationTarget": {"CapacityReservationId": RESERVATION}
    }
    assert "Placement" not in data


def test_nodes_of_a_reservation_are_bought_on_demand(resources_of: ResourcesOf) -> None:
    data = template_data(resources_of(training=[{**BLOCK, "market": "on-demand"}]))
    assert data["CapacityReservationSpecification"]["CapacityReservationTarget"] == {
        "CapacityReservationId": RESERVATION
    }
    assert "InstanceMarketOptions" not in data


def test_the_plan_says_that_a_block_is_paid_for_in_advance() -> None:
    items = {row.item: row.hourly for row in cost.rows(of(training=[BLOCK])) if row.part == "training"}
    assert items["p5.48xlarge (a Capacity Block, paid in advance: at most)"] == 2 * 55.04
