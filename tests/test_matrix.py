"""Shipped topologies of every shape are deployed and destroyed by the real CDK command.

They run one after another on one emulator. Its first zone offers hardly any type of today. CloudFormation and the roles
have Shoal's policies, and AWS denies no request.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from shoal_local_aws.aws import ACCOUNT, REGION, EmbeddedAws
from shoal_local_aws.faults.zones import FIRST_ZONE
from tests.local_aws.accounts import refused, running_aws

from common import names
from infra import topology
from infra.policies import BOUNDARY
from shoal.aws import cdk, policies
from shoal.aws.account import Account
from shoal.deployments.removal.inventory import inventory, left_over
from tests.command_user import make_repository_with_empty_installs
from tests.infra.variants import DEPLOYED, SHIPPED

pytestmark = pytest.mark.end_to_end

IN_CI = "mixed-spot"
"""Mixed GPUs next to a cluster, which has the constructs of most topologies."""

Run = Callable[..., None]


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedAws]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FIRST_ZONE, "use1-az3")
        with running_aws(tmp_path_factory.mktemp("aws"), cdk.WHEELS) as running:
            yield running


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the last synthesised app."""
    return tmp_path_factory.mktemp("synthesised") / "assembly"


@pytest.fixture(scope="module")
def run(aws: EmbeddedAws, assembly: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a runner of `cdk` on a prepared emulator. The clients of this process use the same one."""
    folder = tmp_path_factory.mktemp("matrix")
    repository = make_repository_with_empty_installs(folder / "repository")

    account, log = Account(), folder / "cdk.log"

    def command(*arguments: str) -> None:
        given = (*arguments, "-c", f"permissions_boundary={policies.arn(account, BOUNDARY)}")
        cdk.run(given, environment={}, assembly=assembly, log=log, root=repository)

    policies.provide(account)
    allowed = policies.execution(account)
    cdk.prepare(account=ACCOUNT, region=REGION, execution=allowed, environment={}, log=log)
    return command


@pytest.fixture(scope="module")
def before(run: Run) -> dict[str, set[str]]:
    """Return the resources of the account before any deployment."""
    return inventory()


def groups() -> dict[str, tuple[int, int, str, str, tuple[str, ...]]]:
    """Return each node group's maximum size, desired capacity, market, start, and types if there are several."""
    found = boto3.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    tags = [{tag["Key"]: tag["Value"] for tag in group["Tags"]} for group in found]
    return {
        tag[names.TAG_GROUP]: (
            group["MaxSize"],
            group["DesiredCapacity"],
            tag[names.TAG_MARKET],
            tag[names.TAG_START],
            tuple(each["InstanceType"] for each in overrides(group)),
        )
        for group, tag in zip(found, tags, strict=True)
    }


def overrides(group: Any) -> list[dict[str, str]]:
    return list(group.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {}).get("Overrides", []))


def cluster() -> dict[str, tuple[str, int, str]]:
    """Return the type, count and market of the living cluster's node groups, by role."""
    emr = boto3.client("emr")
    (living,) = emr.list_clusters(ClusterStates=["STARTING", "BOOTSTRAPPING", "RUNNING", "WAITING"])["Clusters"] or [{}]
    found = emr.list_instance_groups(ClusterId=living["Id"])["InstanceGroups"] if living else []
    return {
        group["InstanceGroupType"].lower(): (group["InstanceType"], group["RequestedInstanceCount"], group["Market"])
        for group in found
    }


def market(word: str) -> str:
    """Return a market as EMR spells it."""
    return word.upper().replace("-", "_")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == IN_CI else pytest.mark.soak) for name in DEPLOYED]
)
def test_a_topology_is_deployed_as_written_and_destroyed_without_a_trace(
    name: str, run: Run, assembly: Path, before: dict[str, set[str]], aws: EmbeddedAws
) -> None:
    wanted = topology.load(name, SHIPPED)
    run("deploy", "-c", f"topology={name}", "--require-approval", "never")
    assert groups() == {
        each.name: (
            *(each.count, each.count if each.start == "deploy" else 0),
            *(each.market, each.start, each.instance_types),
        )
        for each in wanted.training
    }
    expected = {}
    if wanted.preprocessing is not None:
        primary = wanted.preprocessing.primary
        expected = {"master": (primary.instance_type, 1, market(primary.market))}
        for role, workers in wanted.preprocessing.workers:
            expected[role] = (workers.instance_type, workers.count, market(workers.market))
    assert cluster() == expected
    run("destroy", "--app", os.fspath(assembly), "--force")  # synthesis takes seconds
    assert left_over(before, inventory()) == {}
    assert refused(aws) == set()
