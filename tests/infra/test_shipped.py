"""Every shipped topology is valid, is what it stands for, has its documented price, and keeps the rules of stacks."""

import datetime
import re

import pytest

from infra import catalog, cost, preflight, topology
from tests.infra import invariants, reach
from tests.infra.handled import Handled
from tests.infra.invariants import Resources
from tests.infra.variants import DEPLOYED, SHIPPED

DOCUMENTATION = SHIPPED.with_name("docs") / "topologies.md"
NAMES = topology.names(SHIPPED)
A_DAY = datetime.date(2026, 11, 20)

# The reference's table of prices: nodes and GPUs used on each, as (type, nodes, GPUs a node). Its two mixed clusters
# stand there twice, with its balancer and without.
PRICE_TABLE = {
    "reference-1g3": {("g3.4xlarge", 1, 1)},
    "reference-1p2": {("p2.xlarge", 1, 1)},
    "reference-1g3x16": {("g3.16xlarge", 1, 4)},
    "reference-2g3": {("g3.4xlarge", 2, 1)},
    "reference-2g3x16-2gpu": {("g3.16xlarge", 2, 2)},
    "reference-4g3": {("g3.4xlarge", 4, 1)},
    "reference-2g3x16": {("g3.16xlarge", 2, 4)},
    "reference-3g3-1p2": {("g3.4xlarge", 3, 1), ("p2.xlarge", 1, 1)},
    "reference-1g3-1p2": {("g3.4xlarge", 1, 1), ("p2.xlarge", 1, 1)},
}


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


def test_every_row_of_the_references_price_table_has_a_topology() -> None:
    for name, groups in PRICE_TABLE.items():
        found = topology.load(name, SHIPPED).training
        assert {(group.instance_type, group.count, group.gpus) for group in found} == groups


@pytest.mark.parametrize("workers", [2, 4, 8])
def test_every_column_of_the_references_preprocessing_table_has_a_topology(workers: int) -> None:
    found = topology.load(f"reference-emr-{workers}", SHIPPED)
    assert found.preprocessing is not None
    assert found.preprocessing.core is not None
    assert found.training == ()
    assert (found.preprocessing.core.instance_type, found.preprocessing.core.count) == ("m4.xlarge", workers)


@pytest.mark.parametrize(
    ("name", "nodes", "gpus"), [("embeddings-1gpu", 1, 1), ("embeddings-1x4gpu", 1, 4), ("embeddings-4x1gpu", 4, 1)]
)
def test_the_settings_of_the_study_of_embeddings_have_topologies(name: str, nodes: int, gpus: int) -> None:
    found = topology.load(name, SHIPPED)
    assert found.preprocessing is None
    (group,) = found.training
    gpu = catalog.find(group.instance_type).gpu
    assert gpu is not None
    assert (gpu.name, group.count, group.gpus) == ("T4", nodes, gpus)


def test_in_the_studys_own_plan_nodes_without_gpus_read_for_those_that_train() -> None:
    found = topology.load("embeddings-4x1gpu-2readers", SHIPPED)
    assert found.trainers == topology.load("embeddings-4x1gpu", SHIPPED).training
    assert [(group.instance_type, group.count) for group in found.readers] == [("m5.xlarge", 2)]


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
def test_nodes_that_train_together_share_a_folder(name: str) -> None:
    spec = topology.load(name, SHIPPED)
    assert bool(spec.share) is (spec.gpu_nodes > 1)


@pytest.mark.parametrize("name", NAMES)
def test_a_price_an_hour_is_known(name: str) -> None:
    spec = topology.load(name, SHIPPED)
    assert 0 == cost.hourly_fixed(spec) <= resting(spec) <= cost.hourly(spec) <= cost.hourly_at_maximum(spec)


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_says_its_price_an_hour(name: str) -> None:
    spec = topology.load(name, SHIPPED)
    said = re.findall(rf"^\| `{name}` \|.*?\| (\d+\.\d\d) \| (\d+\.\d\d) \|", DOCUMENTATION.read_text("utf-8"), re.M)
    assert said == [(f"{resting(spec):.2f}", f"{cost.hourly(spec):.2f}")]


def test_the_starter_costs_less_than_a_dollar_an_hour_with_everything_running() -> None:
    spec = topology.load("starter", SHIPPED)
    assert spec.preprocessing is not None
    assert spec.training
    assert cost.hourly_at_maximum(spec) < 1


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
