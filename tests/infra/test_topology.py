"""The fields of a topology, and their defaults."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra import topology
from infra.topology_error import TopologyError

LEAST = """\
description: x
training:
  - {instance_type: g4dn.12xlarge, count: 1}
"""

WHOLE = """\
description: A mixed cluster
region: eu-west-1
zone: eu-west-1b
owner: ada
tags: {project: reviews}
preprocessing:
  release: emr-7.12.0
  primary: {instance_type: m7g.xlarge, market: spot}
  core: {instance_type: m7g.xlarge, count: 2}
  task: {instance_type: m6g.xlarge, count: 3, market: spot}
  scaling: {maximum: 8}
training:
  - instance_type: g5.xlarge
    count: 1
  - name: slow
    instance_type: g4dn.12xlarge
    count: 2
    gpus: 3
    market: spot
    start: deploy
share: nfs
data: {keep: true}
guard: {max_hours: 24, idle_minutes: 60, budget: 99.5, mail: me@example.org}
network: {egress: nat}
inputs: [s3://my-reviews/2024/, s3://theirs]
"""


def load(folder: Path, text: str) -> topology.Topology:
    (folder / "mine.yaml").write_text(text, encoding="utf-8")
    return topology.load("mine", folder)


def test_a_file_anywhere_is_a_topology_named_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.yml").write_text(LEAST)
    monkeypatch.chdir(tmp_path)
    for given_ in ("own.yml", str(tmp_path / "own.yml")):
        assert topology.load(given_, Path("topologies")).name == topology.name_of(given_) == "own"
    assert topology.anywhere("own.yml") == str(tmp_path / "own.yml")
    assert topology.anywhere("demo") == topology.name_of("demo") == "demo"


def test_a_fault_of_ones_own_file_names_it_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(LEAST)
    with pytest.raises(TopologyError, match=r"^There is no file no/mine\.yaml; did you mean mine\?$"):
        topology.load("no/mine.yaml", tmp_path)
    with pytest.raises(TopologyError, match=r"^There is no file other\.yaml; check the path\.$"):
        topology.load("other.yaml", tmp_path)
    Path("mine.yaml").write_text(LEAST.replace("count", "cuont"))
    with pytest.raises(TopologyError, match=r"^mine\.yaml, line 3: 'cuont' is not a field"):
        topology.load("mine.yaml", Path("topologies"))


def test_a_path_that_the_system_refuses_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r"\.yaml cannot be read \(File name too long\); "):
        topology.load(f"{'x' * 300}.yaml", tmp_path)


def test_a_whole_topology_is_read_as_written(tmp_path: Path) -> None:
    found = load(tmp_path, WHOLE)
    assert (found.name, found.region, found.zone, found.owner) == ("mine", "eu-west-1", "eu-west-1b", "ada")
    assert found.tags == {"project": "reviews"}
    cluster = found.preprocessing
    assert cluster is not None
    assert cluster.scaling is not None
    assert (cluster.release, cluster.primary.market, cluster.scaling.maximum) == ("emr-7.12.0", "spot", 8)
    assert [(role, group.count, group.market) for role, group in cluster.workers] == [
        ("core", 2, "on-demand"),
        ("task", 3, "spot"),
    ]
    assert (found.share, found.data.keep, found.network.egress) == ("nfs", True, "nat")
    assert (found.guard.max_hours, found.guard.idle_minutes, found.guard.budget) == (24, 60, 99.5)
    assert found.inputs == ("s3://my-reviews/2024/", "s3://theirs")


def test_a_group_is_named_after_its_type_and_uses_all_its_gpus_unless_told(tmp_path: Path) -> None:
    first, second = load(tmp_path, WHOLE).training
    assert (first.name, first.gpus, first.market, first.start) == ("g5-xlarge", 1, "on-demand", "train")
    assert (second.name, second.gpus, second.market, second.start) == ("slow", 3, "spot", "deploy")


def test_what_a_topology_does_not_say_costs_and_opens_the_least(tmp_path: Path) -> None:
    found = load(tmp_path, LEAST)
    assert found.preprocessing is found.share is found.zone is found.owner is None
    assert (found.region, found.network.egress, found.data.keep) == ("us-east-1", "none", None)
    assert found.inputs == ()
    assert (found.guard.max_hours, found.guard.idle_minutes, found.guard.budget) == (12, 30, None)
    assert (found.training[0].gpus, found.training[0].market, found.training[0].start) == (4, "on-demand", "train")


@pytest.mark.parametrize("only", ["preprocessing: {primary: {instance_type: m5.xlarge}}", LEAST.split("\n", 1)[1]])
def test_one_half_of_the_work_is_enough(tmp_path: Path, only: str) -> None:
    found = load(tmp_path, f"description: x\n{only}\n")
    assert (found.preprocessing is None) is bool(found.training)


def test_one_node_may_do_all_of_the_preprocessing(tmp_path: Path) -> None:
    found = load(tmp_path, "description: x\npreprocessing: {primary: {instance_type: m7g.xlarge}}\n").preprocessing
    assert found is not None
    assert (found.workers, found.architecture) == ((), "arm64")


def test_a_network_and_a_bucket_that_exist_are_named(tmp_path: Path) -> None:
    own = "zone: us-east-1a\nnetwork: {vpc: vpc-0a1b2c3d, subnet: subnet-0a1b2c3d}\ndata: {bucket: my-reviews}\n"
    found = load(tmp_path, LEAST + own)
    assert (found.network.vpc, found.network.subnet, found.data.bucket) == (
        "vpc-0a1b2c3d",
        "subnet-0a1b2c3d",
        "my-reviews",
    )


def test_readers_have_no_gpus_and_are_no_gpu_nodes(tmp_path: Path) -> None:
    readers = "  - {name: readers, role: read, instance_type: m5.xlarge, count: 2, market: spot}\n"
    found = load(tmp_path, f"{LEAST}{readers}share: nfs\n")
    assert [(group.name, group.gpus) for group in found.trainers] == [("g4dn-12xlarge", 4)]
    assert [(group.name, group.gpus) for group in found.readers] == [("readers", 0)]
    assert found.gpu_nodes == 1
    assert topology.instance_types(found) == ["g4dn.12xlarge", "m5.xlarge"]


def test_each_instance_type_is_listed_once(tmp_path: Path) -> None:
    types = topology.instance_types(load(tmp_path, WHOLE))
    assert types == ["m7g.xlarge", "m6g.xlarge", "g5.xlarge", "g4dn.12xlarge"]


def test_the_example_of_the_documentation_is_one_and_its_mistake_is_told_as_it_says(tmp_path: Path) -> None:
    documentation = (Path(__file__).resolve().parents[2] / "docs" / "topologies.md").read_text("utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", documentation, re.DOTALL)
    folder = tmp_path / "topologies"
    folder.mkdir()
    assert load(folder, example).gpu_nodes == 4
    with pytest.raises(TopologyError) as caught:
        load(folder, example.replace("g5.xlarge", "g5.xlrge"))
    assert str(caught.value) in documentation


@given(st.text())
def test_a_deployment_is_refused_or_its_stack_has_a_name_that_cloudformation_takes(name: str) -> None:
    try:
        stack = topology.stack_name(name)
    except TopologyError as error:
        nearest = re.search(r"such as '(.*)'\.$", str(error))
        assert nearest is not None
        assert topology.check_deployment(nearest[1])
    else:
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,127}", stack)


@given(st.text())
def test_any_owner_can_stand_in_a_tag(owner: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_.+@-]{1,64}", topology.owner_tag(owner))
