"""The guard in the template: its settings, its permissions, and whom it warns."""

import json
from pathlib import Path
from typing import Any

import pytest
from aws_cdk.assertions import Annotations, Match, Template

from infra import cost, parts, topology
from infra.handlers.guard.rules import GuardSettings
from tests.infra.invariants import Resources, as_list, of_type, references, the
from tests.infra.templates import Synthesise, Templates
from tests.infra.variants import SHIPPED


def guarded(*, update: dict[str, Any] | None = None, **guard: Any) -> topology.Topology:
    spec = topology.load("demo", SHIPPED)
    return spec.model_copy(update={"guard": parts.GuardSpec(**guard), **(update or {})})


def function_of(resources: Resources) -> dict[str, Any]:
    return the(resources, "AWS::Lambda::Function", "GuardFunction")[1]


def settings(resources: Resources) -> GuardSettings:
    """The function's settings; a value that is known only after the deployment is a logical id."""
    told = function_of(resources)["Environment"]["Variables"]["SETTINGS"]["Fn::Join"][1]
    text = "".join(part if isinstance(part, str) else next(iter(references(part))) for part in told)
    return GuardSettings(**json.loads(text))


def statements(resources: Resources) -> list[dict[str, Any]]:
    return list(the(resources, "AWS::IAM::Policy", "GuardRole")[1]["PolicyDocument"]["Statement"])


def actions(statement: dict[str, Any]) -> list[str]:
    return as_list(statement["Action"])


def allowed(resources: Resources, action: str) -> dict[str, Any]:
    (statement,) = (each for each in statements(resources) if action in actions(each))
    return statement


def test_the_function_is_told_its_limits_and_prices(templates: Templates) -> None:
    spec = guarded(max_hours=7, idle_minutes=45, budget=90.0, mail="ada@example.org")
    resources = templates.resources(spec)
    told = settings(resources)
    assert (told.deployment, told.stack, told.keep) == ("mine", "AWS::StackId", None)
    assert (told.max_hours, told.idle_minutes, told.budget) == (7, 45, 90.0)
    assert told.bucket in of_type(resources, "AWS::S3::Bucket")
    assert told.topic in of_type(resources, "AWS::SNS::Topic")
    assert (told.account, told.extension) == ("/shoal/mine/guard", "/shoal/mine/extension")
    assert spec.preprocessing is not None
    workers = sum(group.count for _, group in spec.preprocessing.workers)
    running = sum(told.gpu[group.instance_type] * group.count for group in spec.training)
    running += told.emr["m5.xlarge"] * (1 + workers) + told.standing
    assert running == pytest.approx(cost.hourly(spec))


def test_it_is_told_the_price_of_readers(templates: Templates) -> None:
    spec = topology.load("embeddings-4x1gpu-2readers", SHIPPED)
    told = settings(templates.resources(spec))
    assert 4 * told.gpu["g4dn.xlarge"] + 2 * told.gpu["m5.xlarge"] + told.standing == pytest.approx(cost.hourly(spec))


@pytest.mark.parametrize(
    ("data", "keep"), [({"keep": True}, True), ({"bucket": "mine"}, True), ({"keep": False}, False)]
)
def test_it_is_told_whether_data_outlive_the_stack(data: dict[str, Any], keep: bool, templates: Templates) -> None:
    resources = templates.resources(guarded(update={"data": parts.DataSpec(**data)}))
    assert settings(resources).keep is keep


def test_it_wakes_every_five_minutes_and_brings_its_own_files_alone(templates: Templates) -> None:
    resources = templates.resources(guarded())
    _, clock = the(resources, "AWS::Events::Rule")
    assert (clock["ScheduleExpression"], clock["State"]) == ("rate(5 minutes)", "ENABLED")
    function = function_of(resources)
    folder = templates.assembly(guarded()) / f"asset.{function['Code']['S3Key'].removesuffix('.zip')}"
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert found == ["guard/__init__.py", "guard/main.py", "guard/parameters.py", "guard/rules.py"]
    assert function["Timeout"] < 5 * 60


def test_it_may_delete_its_own_stack_and_end_what_carries_its_deployments_tag(templates: Templates) -> None:
    resources = templates.resources(guarded())
    assert allowed(resources, "cloudformation:DeleteStack")["Resource"] == {"Ref": "AWS::StackId"}
    for action, tag in (
        ("autoscaling:SetDesiredCapacity", "aws:ResourceTag/shoal:deployment"),
        ("autoscaling:UpdateAutoScalingGroup", "aws:ResourceTag/shoal:deployment"),
        ("elasticmapreduce:TerminateJobFlows", "elasticmapreduce:ResourceTag/shoal:deployment"),
    ):
        assert allowed(resources, action)["Condition"] == {"StringEquals": {tag: "mine"}}
    assert allowed(resources, "s3:ListBucket")["Condition"] == {
        "StringLike": {"s3:prefix": ["nodes/", "requests/mine.json", "runs/mine.*/ended.json"]}
    }
    anywhere = {action for each in statements(resources) if each["Resource"] == "*" for action in actions(each)}
    assert anywhere == {
        "autoscaling:DescribeAutoScalingGroups",
        "cloudwatch:GetMetricStatistics",
        "ec2:DescribeInstances",
    }
    read = [json.dumps(each["Resource"]) for each in statements(resources) if "s3:GetObject" in actions(each)]
    (written,) = (json.dumps(each["Resource"]) for each in statements(resources) if "s3:PutObject" in actions(each))
    assert written.count("/requests/mine.json") == 1
    assert [each.count("/requests/mine.json") + each.count("/runs/mine.*/ended.json") for each in read] == [1, 1]


def test_without_a_mail_address_nobody_is_told(templates: Templates) -> None:
    resources = templates.resources(guarded(budget=90.0))
    for kind in ("SNS::Topic", "SNS::Subscription", "Budgets::Budget"):
        assert not of_type(resources, f"AWS::{kind}")
    assert settings(resources).topic == ""
    assert "sns:Publish" not in json.dumps(statements(resources))


def test_mails_go_through_an_encrypted_topic_that_demands_tls(templates: Templates) -> None:
    resources = templates.resources(guarded(mail="ada@example.org"))
    _, subscription = the(resources, "AWS::SNS::Subscription")
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "ada@example.org")
    assert the(resources, "AWS::SNS::Topic")[1]["KmsMasterKeyId"]
    _, policy = the(resources, "AWS::SNS::TopicPolicy")
    assert ("Deny", {"Bool": {"aws:SecureTransport": "false"}}) in [
        (each["Effect"], each.get("Condition")) for each in policy["PolicyDocument"]["Statement"]
    ]
    assert not of_type(resources, "AWS::Budgets::Budget")


def test_a_budget_with_a_mail_address_is_also_one_of_awss(templates: Templates) -> None:
    resources = templates.resources(guarded(budget=90.0, mail="ada@example.org"))
    _, found = the(resources, "AWS::Budgets::Budget")
    assert found["Budget"]["BudgetLimit"] == {"Amount": 90, "Unit": "USD"}
    assert found["Budget"]["CostFilters"] == {"TagKeyValue": ["user:shoal:deployment$mine"]}
    warned = [each["Notification"]["Threshold"] for each in found["NotificationsWithSubscribers"]]
    assert warned == [80, 100]


def test_a_budget_without_prices_is_refused_but_not_a_deployment_without_budget(
    synthesise: Synthesise, tmp_path: Path
) -> None:
    priceless = {"region": "ap-southeast-3"}
    for name, guard, refusals in (("free", {}, 0), ("limited", {"budget": 90.0}, 1)):
        stack = synthesise(guarded(update=priceless, **guard), tmp_path / name)
        found = Annotations.from_stack(stack).find_error(
            "*", Match.string_like_regexp("cannot be kept without the prices of")
        )
        assert len(found) == refusals
        told = settings(Template.from_stack(stack).to_json()["Resources"])
        assert (told.standing, "m5.xlarge" in told.unpriced) == (0, True)
