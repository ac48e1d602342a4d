import datetime
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from infra import catalog, cost, managed_spec, preflight, topology
from infra.preflight import Finding, offline
from tests.infra.variants import SHIPPED

NODE = {"instance_type": "g5.xlarge", "count": 1}
PRIMARY = {"instance_type": "m5.xlarge"}


def of(**fields):
    return topology.Topology.model_validate({"name": "mine", "description": "x", **fields})


def freeze(patch, today):
    """Make this the current day of the preflight."""
    now = datetime.datetime.combine(today, datetime.time(), datetime.UTC)
    patch.setattr(preflight, "datetime", Mock(datetime=Mock(now=Mock(return_value=now))))


@pytest.fixture(autouse=True, scope="module")
def today():
    with pytest.MonkeyPatch.context() as patch:
        freeze(patch, datetime.date(2026, 11, 20))
        yield


CASES = yaml.safe_load(Path(__file__).with_name("preflight.yaml").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_each_problem_has_a_level_and_a_message(case, messages):
    findings = offline(of(**case["fields"]))
    assert [f"{each.level} {each.rule}" for each in findings] == case["findings"]
    for each in findings:
        messages.check(each.sentence)


@pytest.mark.parametrize("name", topology.names(SHIPPED))
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


SUPPORTED = {
    datetime.date(2027, 8, 16): {"preprocessing": {"release": "emr-7.10.0", "primary": PRIMARY}},
    catalog.image_of("g5.xlarge").support_ends: {"training": [NODE]},
    managed_spec.TAG_SUPPORT_ENDS: {"managed": {"instance_type": "ml.g5.xlarge"}},
}


@pytest.mark.parametrize("end", SUPPORTED, ids=[" ".join(fields) for fields in SUPPORTED.values()])
@pytest.mark.parametrize("days", [-61, -60, -1, 0, 100])
def test_what_aws_no_longer_supports_is_a_warning(days, end, monkeypatch, messages):
    freeze(monkeypatch, end + datetime.timedelta(days=days))
    findings = offline(of(**SUPPORTED[end]))
    late = [each for each in findings if each.rule == "support_ending"]
    assert [each.level for each in late] == ([] if days < -60 else ["warning"])
    for each in late:
        messages.check(each.sentence)


def test_aws_does_not_support_images_of_users():
    image = "111122223333.dkr.ecr.us-east-1.amazonaws.com/shoal:1"
    own = of(
        training=[{**NODE, "image": "ami-0a1b2c3d4e5f60718"}], managed={"instance_type": "ml.g5.xlarge", "image": image}
    )
    assert list(preflight.supported_by_aws(own)) == []


def test_the_support_of_the_newest_release_ends_last():
    assert preflight.support_ends(preflight.newest_release()) is not None
    assert preflight.support_ends("emr-7.11.0") == preflight.support_ends("emr-7.13.0")
    assert preflight.support_ends("emr-7.99.0") is None
