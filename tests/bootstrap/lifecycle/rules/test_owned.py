"""What the preflight says of a key, images, a boundary and reservations: as the embedded AWS and AWS answer."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from bootstrap.lifecycle.rules import PreflightContext, owned
from tests.bootstrap.lifecycle.preflight import GPU, PRIMARY, of

KEY = "arn:aws:kms:us-east-1:000000000000:key/1234abcd-12ab-34cd-56ef-1234567890ab"
IMAGE, RESERVATION, ZONE = "ami-0a1b2c3d4e5f60718", "cr-0a1b2c3d4e5f60718", "us-east-1b"
BLOCK = {**GPU, "instance_type": "p5.48xlarge", "market": "capacity-block", "reservation": RESERVATION}
HELD = {
    "InstanceType": "p5.48xlarge",
    "AvailabilityZone": ZONE,
    "TotalInstanceCount": 2,
    "State": "active",
    "ReservationType": "capacity-block",
}
FINE = {"ImageId": IMAGE, "State": "available", "Architecture": "x86_64", "RootDeviceName": "/dev/xvda"}


@contextmanager
def answering(service: str, *answers: tuple[str, Any], **fields: Any) -> Iterator[PreflightContext]:
    """A context whose client of one service gives these answers; a text is the code of an error."""
    client = boto3.client(service, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
    with Stubber(client) as stub:
        for operation, answer in answers:
            if isinstance(answer, str):
                stub.add_client_error(operation, answer, "no", 400)
            else:
                stub.add_response(operation, answer)
        account: Any = SimpleNamespace(
            client=lambda _: client, items=lambda *_, **__: iter(()), number=lambda: "0" * 12
        )
        yield PreflightContext(topology=of(**fields), deployment="mine", owner="ada", account=account)
        stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("NotFoundException", "there is no arn:"),
        ({"KeyMetadata": {"KeyId": "x", "KeyState": "PendingDeletion"}}, "is PendingDeletion and SYMMETRIC_DEFAULT"),
        ({"KeyMetadata": {"KeyId": "x", "KeyState": "Enabled", "KeySpec": "RSA_2048"}}, "is Enabled and RSA_2048"),
        ({"KeyMetadata": {"KeyId": "x", "KeyState": "Enabled"}}, ""),
    ],
)
def test_a_key_must_be_there_and_encrypt(answer: Any, said: str) -> None:
    with answering("kms", ("describe_key", answer), training=[GPU], kms_key=KEY) as context:
        found = list(owned.key_unusable(context))
    assert [said in sentence for sentence in found] == ([True] if said else [])


SCALING = "arn:aws:iam::000000000000:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"


@pytest.mark.parametrize(("principal", "warned"), [("arn:aws:iam::000000000000:root", True), (SCALING, False)])
def test_a_key_that_does_not_let_auto_scaling_in_is_warned_of(principal: str, warned: bool) -> None:
    statement = {"Effect": "Allow", "Principal": {"AWS": principal}, "Action": "kms:*", "Resource": "*"}
    answer = ("get_key_policy", {"Policy": json.dumps({"Statement": [statement]})})
    with answering("kms", answer, training=[GPU], kms_key=KEY) as context:
        assert bool(list(owned.key_not_for_scaling(context))) == warned


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("InvalidAMIID.NotFound", "your account may start no ami-"),
        ({"Images": []}, "your account may start no ami-"),
        ({"Images": [{**FINE, "State": "pending"}]}, "your account may start no ami-"),
        ({"Images": [{**FINE, "Architecture": "arm64"}]}, "is arm64, and the nodes are x86_64"),
        ({"Images": [{**FINE, "RootDeviceName": "/dev/sda1"}]}, "has the root device /dev/sda1"),
        ({"Images": [{**FINE, "BlockDeviceMappings": [{"Ebs": {"VolumeSize": 200}}]}]}, "needs 200 GiB"),
        ({"Images": [{**FINE, "BlockDeviceMappings": [{"Ebs": {"VolumeSize": 75}}]}]}, ""),
    ],
)
def test_an_image_must_be_there_and_boot_as_amazon_linux_does(answer: Any, said: str) -> None:
    with answering("ec2", ("describe_images", answer), training=[{**GPU, "image": IMAGE}]) as context:
        found = list(owned.image_unusable(context))
    assert [said in sentence for sentence in found] == ([True] if said else [])


def test_the_clusters_image_has_its_nodes_architecture() -> None:
    cluster = {"primary": {**PRIMARY, "instance_type": "m7g.xlarge"}, "image": IMAGE}
    with answering("ec2", ("describe_images", {"Images": [FINE]}), preprocessing=cluster) as context:
        (sentence,) = owned.image_unusable(context)
    assert sentence == f"preprocessing, image: {IMAGE} is x86_64, and the nodes are arm64; write another."


def test_a_boundary_must_exist() -> None:
    boundary = "arn:aws:iam::000000000000:policy/boundary"
    for answer, missing in (("NoSuchEntity", True), ({"Policy": {}}, False)):
        answers = ("get_policy", answer)
        with answering("iam", answers, training=[GPU], permissions_boundary=boundary) as context:
            assert bool(list(owned.no_such_boundary(context))) == missing


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (None, "is not in us-east-1"),
        ({"InstanceType": "p5en.48xlarge"}, "is of p5en.48xlarge"),
        ({"AvailabilityZone": "us-east-1c"}, "is in us-east-1c, not in us-east-1b"),
        ({"ReservationType": "default"}, "is no Capacity Block; leave `market` out"),
        ({"State": "expired"}, "is expired, and nothing starts in it"),
        ({"TotalInstanceCount": 1}, "has 1 instances, fewer than 2; write `count: 1`"),
        ({"State": "scheduled"}, ""),
    ],
)
def test_a_reservation_must_have_what_its_group_needs(held: dict[str, Any] | None, said: str) -> None:
    answer = {"CapacityReservations": [] if held is None else [{**HELD, **held}]}
    operation = ("describe_capacity_reservations", answer)
    with answering("ec2", operation, training=[BLOCK], zone=ZONE) as context:
        found = list(owned.reservation_unusable(context))
    assert [said in sentence for sentence in found] == ([True] if said else [])


def test_an_on_demand_group_does_not_start_in_a_block() -> None:
    operation = ("describe_capacity_reservations", {"CapacityReservations": [HELD]})
    with answering("ec2", operation, training=[{**BLOCK, "market": "on-demand"}], zone=ZONE) as context:
        (sentence,) = owned.reservation_unusable(context)
    assert sentence.endswith("is a Capacity Block; write `market: capacity-block`.")
