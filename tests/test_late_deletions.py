"""Deletions on AWS are not instant: what comes late, or at the same time, is gone after a second one at the latest.

A deletion by CloudFormation alone is what `cdk destroy` and the guard ask for.
"""

from collections.abc import Iterator

import pytest

from bootstrap.aws import cdk
from bootstrap.removal.inventory import inventory, left_over
from embedded.aws import ACCOUNT, REGION, EmbeddedAws
from embedded.faults.kinds import LateInterfaces, LateUpload, RevokedMeanwhile, StaleAnswer
from tests.person import Person, give_first_boot

pytestmark = [pytest.mark.end_to_end, pytest.mark.soak]

TOPOLOGY = """
description: A cluster and a node
preprocessing:
  primary: {instance_type: m5.xlarge}
training:
  - {name: fast, instance_type: g5.xlarge, count: 1}
"""
SECONDS = 15


@pytest.fixture(scope="module")
def person(aws: EmbeddedAws, tmp_path_factory: pytest.TempPathFactory) -> Person:
    folder = tmp_path_factory.mktemp("late")
    (folder / "repository").mkdir()
    made = Person(aws, folder / "repository")
    made.writes("late", TOPOLOGY)
    (made.repository / "bootstrap").unlink()
    give_first_boot(made.repository, "exit 0")
    cdk.prepare(account=ACCOUNT, region=REGION, environment=aws.environment, log=folder / "cdk.log")
    return made


@pytest.fixture(autouse=True)
def deployed(person: Person) -> Iterator[None]:
    """A deployment, of which nothing is left when the test ends."""
    before = inventory()
    person.types("deploy", "late", "--owner", "ada", "--yes")
    yield
    assert left_over(before, inventory()) == {}


def test_shoal_waits_for_what_comes_late_and_believes_no_stale_list(person: Person) -> None:
    stale = [
        StaleAnswer(service=service, operation=operation, seconds=SECONDS)
        for service, operation in (("tagging", "GetResources"), ("iam", "ListRoles"), ("ec2", "DescribeSubnets"))
    ]
    late = (LateUpload(times=5), RevokedMeanwhile(times=None), LateInterfaces(seconds=SECONDS))
    with person.aws.faults.during(*late, *stale):
        assert "nothing that costs money is left" in person.types("destroy", "late", "--yes")[0]
