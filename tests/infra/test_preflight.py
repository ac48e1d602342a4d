import datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from infra import catalog, cost, managed_spec, topology
from infra.preflight import offline
from infra.rules import Finding, PreflightInput, machines
from infra.rules.machines import image_too_new
from tests.infra.variants import SHIPPED

TODAY = datetime.date(2026, 11, 20)
MAIL = {"mail": "me@example.org"}
NODE = {"instance_type": "g5.xlarge", "count": 1}
PRIMARY = {"instance_type": "m5.xlarge"}


def of(**fields):
    guard = {**MAIL, **fields.pop("guard", {})}
    return topology.Topology.model_validate({"name": "mine", "description": "x", "guard": guard, **fields})


def found(spec, hours=None):
    return [(each.level, each.rule, each.sentence) for each in offline(spec, hours=hours, today=TODAY)]


CASES = yaml.safe_load(Path(__file__).with_name("preflight.yaml").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_each_problem_has_a_level_and_a_message(case, messages):
    findings = found(of(**case["fields"]), case.get("hours"))
    if "finding" in case:
        findings = [each for each in findings if [*each[:2]] == case["finding"].split()]
        assert findings
    else:
        assert [[*each[:2]] for each in findings] == case["all"]
    for *_, sentence in findings:
        messages.check(sentence)


def test_the_first_group_by_name_serves_the_share_in_any_order_of_the_file():
    many, fast = {**NODE, "count": 200}, {"instance_type": "p4d.24xlarge", "count": 1}
    for groups in ([many, {**fast, "name": "a"}], [{**fast, "name": "a"}, many]):
        assert "share_too_slow" not in [rule for _, rule, _ in found(of(training=groups, share="nfs"))]
    for groups in ([many, {**fast, "name": "z"}], [{**fast, "name": "z"}, many]):
        assert "share_too_slow" in [rule for _, rule, _ in found(of(training=groups, share="nfs"))]


@pytest.mark.parametrize("name", topology.names(SHIPPED))
def test_only_shipped_topologies_with_retired_types_are_refused(name):
    spec = topology.load(name, SHIPPED)
    retired = [kind for kind in topology.instance_types(spec) if catalog.find(kind).retired]
    errors = [each for each in offline(spec, today=TODAY) if each.level == "error"]
    assert {each.rule for each in errors} == ({"retired_type"} if retired else set())
    for kind in retired:
        successor = catalog.find(kind).retired
        assert any(kind in each.sentence and successor.successor in each.sentence for each in errors)


def test_the_image_supports_every_type_with_an_image():
    groups = [
        {"name": row.name.replace(".", "-"), "instance_type": row.name, "count": 1}
        for row in catalog.catalog().types.values()
        if row.gpu and row.image
    ]
    assert list(image_too_new(PreflightInput(topology=of(training=groups), hours=1, today=TODAY))) == []


TYPES = [row.name for row in catalog.catalog().types.values() if row.gpu]


@given(st.lists(st.sampled_from(TYPES), min_size=1, max_size=4, unique=True), st.floats(0.01, 2_000))
def test_a_budget_is_checked_against_an_hour_and_against_all_hours(names, budget):
    groups = [{"name": f"group{index}", "instance_type": name, "count": 1} for index, name in enumerate(names)]
    spec = of(training=groups, guard={"budget": budget, "max_hours": 10})
    said = [each for each in offline(spec, today=TODAY) if each.rule.startswith("budget_")]
    hourly = cost.hourly(spec)
    expected = ["error"] if budget < hourly else ["warning"] if budget < 10 * hourly else []
    assert [each.level for each in said] == expected
    assert all(isinstance(each, Finding) and each.sentence.endswith(".") for each in said)


SUPPORTED = {
    datetime.date(2027, 8, 16): {"preprocessing": {"release": "emr-7.10.0", "primary": PRIMARY}},
    catalog.image_of("g5.xlarge").support_ends: {"training": [NODE]},
    managed_spec.TAG_SUPPORT_ENDS: {"managed": {"instance_type": "ml.g5.xlarge"}},
}


@pytest.mark.parametrize("end", SUPPORTED, ids=[" ".join(fields) for fields in SUPPORTED.values()])
@pytest.mark.parametrize("days", [-61, -60, -1, 0, 100])
def test_what_aws_no_longer_supports_is_a_warning(days, end, messages):
    findings = offline(of(**SUPPORTED[end]), today=end + datetime.timedelta(days=days))
    late = [each for each in findings if each.rule == "support_ending"]
    assert [each.level for each in late] == ([] if days < -60 else ["warning"])
    for each in late:
        messages.check(each.sentence)


def test_aws_does_not_support_images_of_users():
    image = "111122223333.dkr.ecr.us-east-1.amazonaws.com/shoal:1"
    own = of(
        training=[{**NODE, "image": "ami-0a1b2c3d4e5f60718"}], managed={"instance_type": "ml.g5.xlarge", "image": image}
    )
    assert list(machines.supported_by_aws(own)) == []


def test_the_support_of_the_newest_release_ends_last():
    assert machines.support_ends(machines.newest_release()) is not None
    assert machines.support_ends("emr-7.11.0") == machines.support_ends("emr-7.13.0")
    assert machines.support_ends("emr-7.99.0") is None
