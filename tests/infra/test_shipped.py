"""Every shipped topology is valid, is what it stands for, and keeps the rules of stacks."""

import datetime
import math
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra import catalog, cost, preflight, topology
from tests.infra import invariants, reach
from tests.infra.handled import Handled
from tests.infra.invariants import Resources
from tests.infra.variants import DEPLOYED, SHIPPED

NAMES = topology.names(SHIPPED)
A_DAY = datetime.date(2026, 11, 20)

SHAPES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("shipped.yaml").read_text("utf-8"))


def shape(spec: topology.Topology) -> dict[str, Any]:
    """The machines of a topology, and what they share."""
    cluster: list[list[Any]] = []
    if spec.preprocessing:
        cluster.append(["primary", spec.preprocessing.primary.instance_type, 1])
        cluster += [[role, group.instance_type, group.count] for role, group in spec.preprocessing.workers]
    return {
        "cluster": cluster,
        "nodes": [
            [group.role, " ".join(group.types), group.count, group.gpus, group.market] for group in spec.training
        ],
        "share": spec.share,
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_topology_has_the_shape_of_what_it_stands_for(name: str) -> None:
    spec = topology.load(name, SHIPPED)
    assert shape(spec) == SHAPES[name]
    assert bool(spec.share) is (spec.gpu_nodes > 1)  # nodes that train together share a folder


@pytest.fixture(scope="module")
def stacks(handled: dict[str, Handled]) -> dict[str, Resources]:
    """The resources of all."""
    assert len(NAMES) >= 20
    return {name: handled[name].resources for name in NAMES}


def resting(spec: topology.Topology) -> float:
    """Dollars an hour before a training."""
    return sum(row.hourly for row in cost.rows(spec) if row.since != "train")


def retired(spec: topology.Topology) -> list[str]:
    return [name for name in topology.instance_types(spec) if catalog.find(name).retired]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_says_what_it_is_for_and_where_an_editor_finds_the_schema(name: str) -> None:
    first, second, *_ = (SHIPPED / f"{name}.yaml").read_text("utf-8").splitlines()
    assert first == "# yaml-language-server: $schema=schema.json"
    assert second.startswith("# ")
    assert topology.stack_name(topology.load(name, SHIPPED).name) == f"Shoal-{name}"


@pytest.mark.parametrize("name", NAMES)
def test_a_retired_topology_names_one_of_today_and_is_refused_for_aws_alone(name: str) -> None:
    spec = topology.load(name, SHIPPED)
    errors = [each for each in preflight.offline(spec, today=A_DAY) if each.level == "error"]
    today = re.findall(r"retired, today `([a-z0-9-]+)`$", spec.description)
    if retired(spec):
        assert {each.rule for each in errors} >= {"retired_type"}
        (equivalent,) = today
        assert not retired(topology.load(equivalent, SHIPPED))
    else:
        assert errors == []
        assert today == []


@pytest.mark.parametrize("name", NAMES)
def test_a_price_an_hour_is_known(name: str) -> None:
    spec = topology.load(name, SHIPPED)
    assert 0 == cost.hourly_fixed(spec) <= resting(spec) <= cost.hourly(spec)


@pytest.mark.parametrize("name", NAMES)
def test_its_budget_is_its_hours_with_everything_at_work(name: str) -> None:
    spec = topology.load(name, SHIPPED)
    assert spec.guard.budget == math.ceil(spec.guard.max_hours * cost.hourly(spec))


def test_the_starter_costs_less_than_a_dollar_an_hour_with_everything_running() -> None:
    spec = topology.load("starter", SHIPPED)
    assert spec.preprocessing is not None
    assert spec.training
    assert cost.hourly(spec) < 1


@pytest.mark.parametrize("name", NAMES)
def test_a_stack_holds_what_its_topology_says(name: str, stacks: dict[str, Resources]) -> None:
    spec = topology.load(name, SHIPPED)
    kinds = [each["Type"] for each in stacks[name].values()]
    assert kinds.count("AWS::EMR::Cluster") == (spec.preprocessing is not None)
    assert kinds.count("AWS::AutoScaling::AutoScalingGroup") == len(spec.training)
    assert kinds.count("AWS::EFS::FileSystem") == (spec.share == "efs")


def test_each_has_resources_like_those_of_one_that_is_deployed(stacks: dict[str, Resources]) -> None:
    alike = {
        name: {(each["Type"], *sorted(each.get("Properties", {}))) for each in resources.values()}
        for name, resources in stacks.items()
    }
    deployed = [alike[name] for name in DEPLOYED]
    assert [name for name in NAMES if alike[name] not in deployed] == []


@pytest.mark.parametrize("name", [*NAMES, "with-inputs", "with-all", "in-network", "without-nat"])
def test_nothing_is_open_untagged_unguarded_left_behind_or_allowed_too_much(
    name: str, handled: dict[str, Handled]
) -> None:
    tags = {topology.TAG_DEPLOYMENT: name, topology.TAG_TOPOLOGY: name, topology.TAG_OWNER: "ada"}
    assert invariants.broken(handled[name].resources, tags) == []


@pytest.mark.parametrize("name", [*NAMES, "with-inputs"])
def test_nodes_write_into_no_bucket_of_somebody_else_and_read_what_they_need(
    name: str, handled: dict[str, Handled]
) -> None:
    resources, spec = handled[name].resources, handled[name].spec
    if spec.preprocessing or spec.training:
        assert reach.wrong(resources, spec.region) == []
    else:  # SageMaker's containers have no network
        assert not [each for each in resources.values() if each["Type"].startswith("AWS::EC2::")]
