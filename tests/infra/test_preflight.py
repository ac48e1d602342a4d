from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from infra import catalog, cost, topology
from infra.preflight import Finding, offline
from tests.infra.variants import SHIPPED


def of(**fields):
    return topology.Topology.model_validate({"name": "mine", "description": "x", **fields})


CASES = yaml.safe_load(Path(__file__).with_name("preflight.yaml").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_each_problem_has_a_level_and_a_message(case, messages):
    findings = offline(of(**case["fields"]))
    assert [f"{each.level} {each.rule}" for each in findings] == case["findings"]
    for each in findings:
        messages.check(each.sentence)


@pytest.mark.parametrize("name", topology.names_in(SHIPPED))
def test_only_shipped_topologies_with_retired_types_are_refused(name):
    spec = topology.load(name, SHIPPED)
    retired = [kind for kind in topology.instance_types(spec) if catalog.find(kind).retired]
    errors = [each for each in offline(spec) if each.level == "error"]
    assert {each.rule for each in errors} == ({"retired_type"} if retired else set())
    for kind in retired:
        successor = catalog.find(kind).retired
        assert any(kind in each.sentence and successor.successor in each.sentence for each in errors)


TYPES = [row.name for row in catalog.catalog().types.values() if row.gpu]


@given(st.lists(st.sampled_from(TYPES), min_size=1, max_size=4, unique=True), st.floats(0.01, 2_000))
def test_a_budget_is_checked_against_an_hour(names, budget):
    groups = [{"name": f"group{index}", "instance_type": name, "count": 1} for index, name in enumerate(names)]
    spec = of(training=groups, guard={"budget": budget, "max_hours": 10})
    said = [each for each in offline(spec) if each.rule.startswith("budget_")]
    assert [each.level for each in said] == ["error"] * (budget < cost.hourly(spec))
    assert all(isinstance(each, Finding) and each.sentence.endswith(".") for each in said)
