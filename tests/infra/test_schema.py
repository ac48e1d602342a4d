"""Tests that the JSON schema for editors agrees with the models."""

import json

import pytest
import yaml
from jsonschema import Draft202012Validator

from infra import topology
from infra.schema import schema
from infra.strict_yaml import StrictLoader
from tests.infra.variants import SHIPPED


def faults(text):
    """Return the JSON paths that an editor underlines. In its YAML 1.2, as in Shoal's, the key `on` is text."""
    return [error.json_path for error in Draft202012Validator(schema()).iter_errors(yaml.load(text, StrictLoader))]


def test_the_shipped_copy_matches_the_models():
    Draft202012Validator.check_schema(schema())
    copy = json.loads((SHIPPED / "schema.json").read_text())
    assert copy == schema(), "update it: python -m infra.schema > topologies/schema.json"


@pytest.mark.parametrize("name", topology.names(SHIPPED))
def test_a_shipped_topology_follows_the_schema(name):
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
def test_the_schema_refuses_mistakes_that_the_models_refuse(written, place):
    found = faults(f"description: x\n{written}\n")
    assert found == [place]


def test_the_schema_refuses_a_name():
    assert faults("description: x\nname: y\n") == ["$"]
