import math
import re

import pytest

from common import names
from infra import catalog, cost, topology
from tests.infra import invariants, reach
from tests.infra.variants import DEPLOYED, SHIPPED

NAMES = topology.names_in(SHIPPED)


@pytest.fixture(params=NAMES)
def spec(request):
    return topology.load(request.param, SHIPPED)


def test_nodes_that_train_together_share_a_folder(spec):
    assert bool(spec.share) is (spec.gpu_nodes > 1)


@pytest.fixture(scope="module")
def stacks(handled):
    assert len(NAMES) >= 20
    return {name: handled[name].resources for name in NAMES}


def retired(spec):
    return [name for name in topology.instance_types(spec) if catalog.find(name).retired]


def test_a_file_starts_with_the_schema_and_a_comment(spec):
    first, second, *_ = (SHIPPED / f"{spec.name}.yaml").read_text("utf-8").splitlines()
    assert first == "# yaml-language-server: $schema=schema.json"
    assert second.startswith("# ")
    assert topology.stack_name(spec.name) == f"Shoal-{spec.name}"


def test_only_a_retired_topology_names_a_current_one(spec):
    today = re.findall(r"retired, today `([a-z0-9-]+)`$", spec.description)
    assert len(today) == bool(retired(spec))
    assert not [name for name in today if retired(topology.load(name, SHIPPED))]


def test_a_price_an_hour_is_known(spec):
    resting = sum(row.hourly for row in cost.rows(spec) if row.since != "train")
    assert 0 == cost.hourly_fixed(spec) <= resting <= cost.hourly(spec)


def test_the_budget_is_the_price_of_max_hours(spec):
    assert spec.guard.budget == math.ceil(spec.guard.max_hours * cost.hourly(spec))


def test_the_starter_costs_less_than_a_dollar_an_hour_with_everything_running():
    spec = topology.load("starter", SHIPPED)
    assert spec.preprocessing is not None
    assert spec.training
    assert cost.hourly(spec) < 1


def test_a_stack_has_the_resources_of_its_topology(spec, stacks):
    kinds = [each["Type"] for each in stacks[spec.name].values()]
    assert kinds.count("AWS::EMR::Cluster") == (spec.preprocessing is not None)
    assert kinds.count("AWS::AutoScaling::AutoScalingGroup") == len(spec.training)
    assert kinds.count("AWS::EFS::FileSystem") == (spec.share == "efs")


def test_each_topology_has_resources_like_those_of_a_deployed_one(stacks):
    alike = {
        name: {(each["Type"], *sorted(each.get("Properties", {}))) for each in resources.values()}
        for name, resources in stacks.items()
    }
    deployed = [alike[name] for name in DEPLOYED]
    assert [name for name in NAMES if alike[name] not in deployed] == []


@pytest.mark.parametrize("name", [*NAMES, "with-inputs", "with-all", "in-network", "without-nat"])
def test_nothing_is_open_untagged_unguarded_left_behind_or_allowed_too_much(name, handled):
    tags = {names.TAG_DEPLOYMENT: name, names.TAG_TOPOLOGY: name, names.TAG_OWNER: "ada"}
    assert invariants.broken(handled[name].resources, tags | handled[name].spec.tags) == []


@pytest.mark.parametrize("name", [*NAMES, "with-inputs", "without-nat"])
def test_nodes_write_into_no_foreign_bucket_and_read_what_they_need(name, handled):
    stack = handled[name]
    if stack.spec.preprocessing or stack.spec.training:
        assert reach.wrong(stack, stack.spec.region) == []
    else:  # SageMaker's containers have no network
        assert not [each for each in stack.resources.values() if each["Type"].startswith("AWS::EC2::")]
