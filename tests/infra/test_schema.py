import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from infra import topology
from infra.document import StrictLoader
from infra.schema import schema
from tests.infra.variants import SHIPPED

WRONG = yaml.safe_load(Path(__file__).with_name("wrong_for_schema.yaml").read_text("utf-8"))


def faults(text):
    """Return the JSON paths that an editor underlines. In its YAML 1.2, as in Shoal's, the key `on` is text."""
    return [error.json_path for error in Draft202012Validator(schema()).iter_errors(yaml.load(text, StrictLoader))]


def test_the_shipped_copy_matches_the_models():
    Draft202012Validator.check_schema(schema())
    copy = json.loads((SHIPPED / "schema.json").read_text())
    assert copy == schema(), "update it: python -m infra.schema > topologies/schema.json"


@pytest.mark.parametrize("name", topology.names_in(SHIPPED))
def test_a_shipped_topology_follows_the_schema(name):
    assert faults((SHIPPED / f"{name}.yaml").read_text()) == []


@pytest.mark.parametrize("case", WRONG, ids=[case["written"] for case in WRONG])
def test_the_schema_refuses_mistakes_that_the_models_refuse(case):
    assert faults(f"description: x\n{case['written']}\n") == [case["place"]]
