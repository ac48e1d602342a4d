"""What the preflight reports of images and reservations, where the embedded AWS has no such answer."""

from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from bootstrap.lifecycle.rules import PreflightContext
from bootstrap.lifecycle.rules.capacity import image_unusable, reservation_unusable
from tests.bootstrap.lifecycle.preflight import GPU, of

RESERVATION, ZONE = "cr-0a1b2c3d4e5f60718", "us-east-1b"
BLOCK = {**GPU, "instance_type": "p5.48xlarge", "market": "capacity-block", "reservation": RESERVATION}
HELD = {
    "InstanceType": "p5.48xlarge",
    "AvailabilityZone": ZONE,
    "TotalInstanceCount": 2,
    "State": "active",
    "ReservationType": "capacity-block",
}


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (None, "is not in us-east-1"),
        ({"InstanceType": "p5en.48xlarge"}, "has the instance_type p5en.48xlarge, and the topology needs p5.48xlarge"),
        ({"AvailabilityZone": "us-east-1c"}, "has the zone us-east-1c, and the topology needs us-east-1b"),
        ({"ReservationType": "default"}, "has the market on-demand, and the topology needs capacity-block"),
        ({"State": "expired"}, "has the state expired, and the topology needs active"),
        ({"TotalInstanceCount": 1}, "has the count 1, and the topology needs 2"),
        ({"TotalInstanceCount": 3, "State": "scheduled"}, ""),
    ],
)
def test_a_reservation_must_have_what_its_group_needs(held: dict[str, Any] | None, said: str) -> None:
    answer = {"CapacityReservations": [] if held is None else [{**HELD, **held}]}
    ec2 = SimpleNamespace(describe_capacity_reservations=lambda **_: answer)
    account: Any = SimpleNamespace(client=lambda _: ec2)
    wanted = of(training=[BLOCK], zone=ZONE)
    context = PreflightContext(topology=wanted, deployment="mine", owner="ada", account=account)
    found = list(reservation_unusable(context))
    assert [said in sentence for sentence in found] == ([True] if said else [])


def test_an_image_that_does_not_exist_is_left_to_the_dry_run() -> None:
    def describe_images(**_: Any) -> Any:
        raise ClientError({"Error": {"Code": "InvalidAMIID.NotFound", "Message": "no"}}, "DescribeImages")

    assert _of_image(describe_images) == []


@pytest.mark.parametrize(
    ("image", "said"),
    [
        ({"RootDeviceName": "/dev/sda1"}, "has the root device /dev/sda1"),
        ({"RootDeviceName": "/dev/xvda", "BlockDeviceMappings": [{"Ebs": {"VolumeSize": 200}}]}, "needs 200 GiB"),
        ({"RootDeviceName": "/dev/xvda", "BlockDeviceMappings": [{"Ebs": {"VolumeSize": 75}}]}, ""),
        (None, ""),
    ],
)
def test_nodes_boot_from_an_image_as_from_amazon_linux(image: dict[str, Any] | None, said: str) -> None:
    found = _of_image(lambda **_: {"Images": [image] if image else []})
    assert [said in sentence for sentence in found] == ([True] if said else [])


def _of_image(describe_images: Any) -> list[str]:
    """What the preflight says of the image of a node group, as EC2 answers."""
    account: Any = SimpleNamespace(client=lambda _: SimpleNamespace(describe_images=describe_images))
    wanted = of(training=[{**GPU, "image": "ami-0a1b2c3d4e5f60718"}])
    return list(image_unusable(PreflightContext(topology=wanted, deployment="mine", owner="ada", account=account)))
