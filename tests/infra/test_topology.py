import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from infra import topology
from infra.topology_error import TopologyError

LEAST = """\
description: x
training:
  - {instance_type: g4dn.12xlarge, count: 1}
"""

WRITING = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-topology.md"
"""The page with an example and with fragments of topologies."""

CASES = yaml.safe_load(Path(__file__).with_name("topologies.yaml").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_a_topology_is_read_with_defaults_from_its_types(tmp_path, case):
    """topologies/schema.json has the defaults, which are left out here."""
    found = load(tmp_path, case["written"])
    assert found.model_dump(mode="json", exclude={"name"}, exclude_defaults=True) == case["read"]
    assert topology.instance_types(found) == case["types"]


def load(folder, text):
    (folder / "mine.yaml").write_text(text, encoding="utf-8")
    return topology.load("mine", folder)


def test_a_file_in_any_folder_is_a_topology_with_its_name(tmp_path, monkeypatch):
    (tmp_path / "own.yml").write_text(LEAST)
    monkeypatch.chdir(tmp_path)
    for given_ in ("own.yml", str(tmp_path / "own.yml")):
        assert topology.load(given_, Path("topologies")).name == topology.name_of(given_) == "own"
    assert topology.absolute("own.yml") == str(tmp_path / "own.yml")
    assert topology.absolute("demo") == topology.name_of("demo") == "demo"


@pytest.mark.parametrize("name", ["no/mine.yaml", "other.yaml", "mine.yaml"])
def test_an_error_names_the_file_by_the_given_path(name, tmp_path, monkeypatch, messages):
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(LEAST.replace("count", "cuont"))
    with messages.raises(TopologyError) as refusal:
        topology.load(name, tmp_path)
    assert name in str(refusal.value)


def test_a_path_that_the_system_refuses_is_one_sentence(tmp_path, messages):
    with messages.raises(TopologyError):
        topology.load(f"{'x' * 300}.yaml", tmp_path)


def test_readers_have_no_gpus_and_do_not_count_as_gpu_nodes(tmp_path):
    readers = "  - {name: readers, role: read, instance_type: m5.xlarge, count: 2, market: spot}\n"
    found = load(tmp_path, f"{LEAST}{readers}share: nfs\n")
    assert [(group.name, group.gpus) for group in found.trainers] == [("g4dn-12xlarge", 4)]
    assert [(group.name, group.gpus) for group in found.readers] == [("readers", 0)]
    assert found.gpu_nodes == 1


def test_the_example_of_the_documentation_is_valid_and_its_mistake_is_reported_as_shown(tmp_path):
    documentation = WRITING.read_text("utf-8")
    (example,) = re.findall(r"<<'END'\n(.*?)END\n", documentation, re.DOTALL)
    folder = tmp_path / "topologies"
    folder.mkdir()
    assert load(folder, example).gpu_nodes == 4
    with pytest.raises(TopologyError) as caught:
        load(folder, example.replace("g5.xlarge", "g5.xlrge"))
    assert str(caught.value) in documentation


@pytest.mark.parametrize("fragment", re.findall(r"```yaml\n(.*?)```", WRITING.read_text("utf-8"), re.DOTALL))
def test_fields_in_the_documentation_are_those_of_a_topology(fragment, tmp_path):
    base = {"description": "A node", "training": [{"instance_type": "g5.xlarge", "count": 1}]}
    assert load(tmp_path, yaml.safe_dump({**base, **yaml.safe_load(fragment)}))


@given(st.text())
def test_a_deployment_is_refused_or_its_stack_name_is_valid(name):
    try:
        stack = topology.stack_name(name)
    except TopologyError as error:
        (nearest,) = re.findall(r"such as '(.*)'\.$", str(error))
        assert topology.check_deployment(nearest)
    else:
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,127}", stack)


@given(st.text())
def test_any_owner_is_a_valid_tag_value(owner):
    assert re.fullmatch(r"[A-Za-z0-9_.+@-]{1,64}", topology.owner_tag(owner))
