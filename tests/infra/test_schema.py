"""The JSON schema for editors agrees with what Shoal reads."""

import json
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from infra import topology
from infra.schema import schema
from infra.strict_yaml import StrictLoader
from tests.infra.variants import SHIPPED


def faults(text: str) -> list[str]:
    """What an editor underlines; its YAML is 1.2, in which the key `on` is text, as in Shoal's."""
    return [error.json_path for error in Draft202012Validator(schema()).iter_errors(yaml.load(text, StrictLoader))]


def test_the_shipped_copy_is_the_models() -> None:
    Draft202012Validator.check_schema(schema())
    copy = json.loads((SHIPPED / "schema.json").read_text())
    assert copy == schema(), "write it again by: python -m infra.schema > topologies/schema.json"


@pytest.mark.parametrize("name", topology.names(SHIPPED))
def test_a_shipped_topology_follows_it(name: str) -> None:
    assert faults((SHIPPED / f"{name}.yaml").read_text()) == []


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ("regoin: us-east-1", "$"),
        ("guard: {max_hours: 0}", "$.guard.max_hours"),
        ("share: ntfs", "$.share"),
        ("training: [{instance_type: m5.xlarge, count: 1}]", "$.training[0].instance_type"),
        ("training: [{instance_type: g5.xlarge}]", "$.training[0]"),
        ("training: [{role: read, instance_type: g5.xlarge, count: 1}]", "$.training[0].instance_type"),
        ("training: [{role: read, instance_type: m7g.xlarge, count: 1}]", "$.training[0].instance_type"),
        ("training: [{role: read, instance_type: m5.xlarge, count: 1, gpus: 1}]", "$.training[0]"),
        ("preprocessing: {primary: {instance_type: g5.xlarge}}", "$.preprocessing"),
    ],
)
def test_an_editor_sees_what_shoal_would_refuse(written: str, place: str) -> None:
    found: list[Any] = faults(f"description: x\n{written}\n")
    assert found == [place]


def test_a_topology_gives_no_name_for_its_file_is_its_name() -> None:
    assert faults("description: x\nname: y\n") == ["$"]
