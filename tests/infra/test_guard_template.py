"""The guard in the template: its settings, its permissions, and whom it warns."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aws_cdk.assertions import Annotations, Match, Template

from infra import cost, parts, topology
from infra.handlers.guard.rules import GuardSettings
from infra.stack import ShoalStack
from tests.infra.invariants import references

SHIPPED = Path(__file__).resolve().parents[2] / "topologies"
Synthesise = Callable[..., ShoalStack]


def guarded(*, update: dict[str, Any] | None = None, **guard: Any) -> topology.Topology:
    spec = topology.load("demo", SHIPPED)
    return spec.model_copy(update={"guard": parts.GuardSpec(**guard), **(update or {})})


def settings(template: Template) -> GuardSettings:
    """The function's settings; a value that is known only after the deployment is a logical id."""
    (function,) = template.find_resources(
        "AWS::Lambda::Function", {"Properties": {"Handler": "guard.main.handler"}}
    ).values()
    told = function["Properties"]["Environment"]["Variables"]["SETTINGS"]["Fn::Join"][1]
    text = "".join(part if isinstance(part, str) else next(iter(references(part))) for part in told)
    return GuardSettings(**json.loads(text))


def statements(template: Template) -> list[dict[str, Any]]:
    (policy,) = (
        each["Properties"]["PolicyDocument"]["Statement"]
        for name, each in template.find_resources("AWS::IAM::Policy").items()
        if name.startswith("GuardRole")
    )
    return list(policy)


def actions(statement: dict[str, Any]) -> list[str]:
    found = statement["Action"]
    return [found] if isinstance(found, str) else list(found)


def allowed(template: Template, action: str) -> dict[str, Any]:
    (statement,) = (each for each in statements(template) if action in actions(each))
    return statement


def test_the_function_is_told_its_limits_and_prices(synthesise: Synthesise, tmp_path: Path) -> None:
    spec = guarded(max_hours=7, idle_minutes=45, budget=90.0, mail="ada@example.org")
    template = Template.from_stack(synthesise(spec, tmp_path))
    told = settings(template)
    assert (told.deployment, told.stack, told.keep) == ("mine", "AWS::StackId", None)
    assert (told.max_hours, told.idle_minutes, told.budget) == (7, 45, 90.0)
    assert told.bucket in template.find_resources("AWS::S3::Bucket")
    assert told.topic in template.find_resources("AWS::SNS::Topic")
    assert (told.account, told.extension) == ("/shoal/mine/guard", "/shoal/mine/extension")
    assert spec.preprocessing is not None
    workers = sum(group.count for _, group in spec.preprocessing.workers)
    running = sum(told.gpu[group.instance_type] * group.count for group in spec.training)
    running += told.emr["m5.xlarge"] * (1 + workers) + told.standing
    assert running == pytest.approx(cost.hourly(spec))


def test_it_is_told_the_price_of_readers(synthesise: Synthesise, tmp_path: Path) -> None:
    spec = topology.load("embeddings-4x1gpu-2readers", SHIPPED)
    told = settings(Template.from_stack(synthesise(spec, tmp_path)))
    assert 4 * told.gpu["g4dn.xlarge"] + 2 * told.gpu["m5.xlarge"] + told.standing == pytest.approx(cost.hourly(spec))


@pytest.mark.parametrize(
    ("data", "keep"), [({"keep": True}, True), ({"bucket": "mine"}, True), ({"keep": False}, False)]
)
def test_it_is_told_whether_data_outlive_the_stack(
    data: dict[str, Any], keep: bool, synthesise: Synthesise, tmp_path: Path
) -> None:
    template = Template.from_stack(synthesise(guarded(update={"data": parts.DataSpec(**data)}), tmp_path))
    assert settings(template).keep is keep


def test_it_wakes_every_five_minutes_and_brings_its_own_files_alone(synthesise: Synthesise, tmp_path: Path) -> None:
    template = Template.from_stack(synthesise(guarded(), tmp_path))
    template.has_resource_properties("AWS::Events::Rule", {"ScheduleExpression": "rate(5 minutes)", "State": "ENABLED"})
    (function,) = template.find_resources(
        "AWS::Lambda::Function", {"Properties": {"Handler": "guard.main.handler"}}
    ).values()
    folder = tmp_path / f"asset.{function['Properties']['Code']['S3Key'].removesuffix('.zip')}"
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert found == ["guard/__init__.py", "guard/main.py", "guard/parameters.py", "guard/rules.py"]
    assert function["Properties"]["Timeout"] < 5 * 60


def test_it_may_delete_its_own_stack_and_end_what_carries_its_deployments_tag(
    synthesise: Synthesise, tmp_path: Path
) -> None:
    template = Template.from_stack(synthesise(guarded(), tmp_path))
    assert allowed(template, "cloudformation:DeleteStack")["Resource"] == {"Ref": "AWS::StackId"}
    for action, tag in (
        ("autoscaling:SetDesiredCapacity", "aws:ResourceTag/shoal:deployment"),
        ("autoscaling:UpdateAutoScalingGroup", "aws:ResourceTag/shoal:deployment"),
        ("elasticmapreduce:TerminateJobFlows", "elasticmapreduce:ResourceTag/shoal:deployment"),
    ):
        assert allowed(template, action)["Condition"] == {"StringEquals": {tag: "mine"}}
    assert allowed(template, "s3:ListBucket")["Condition"] == {
        "StringLike": {"s3:prefix": ["nodes/", "requests/mine.json", "runs/mine.*/ended.json"]}
    }
    anywhere = {action for each in statements(template) if each["Resource"] == "*" for action in actions(each)}
    assert anywhere == {
        "autoscaling:DescribeAutoScalingGroups",
        "cloudwatch:GetMetricStatistics",
        "ec2:DescribeInstances",
    }
    read = [json.dumps(each["Resource"]) for each in statements(template) if "s3:GetObject" in actions(each)]
    (written,) = (json.dumps(each["Resource"]) for each in statements(template) if "s3:PutObject" in actions(each))
    assert written.count("/requests/mine.json") == 1
    assert [each.count("/requests/mine.json") + each.count("/runs/mine.*/ended.json") for each in read] == [1, 1]


def test_without_a_mail_address_nobody_is_told(synthesise: Synthesise, tmp_path: Path) -> None:
    template = Template.from_stack(synthesise(guarded(budget=90.0), tmp_path))
    for kind in ("SNS::Topic", "SNS::Subscription", "Budgets::Budget"):
        template.resource_count_is(f"AWS::{kind}", 0)
    assert settings(template).topic == ""
    assert "sns:Publish" not in json.dumps(statements(template))


def test_mails_go_through_an_encrypted_topic_that_demands_tls(synthesise: Synthesise, tmp_path: Path) -> None:
    template = Template.from_stack(synthesise(guarded(mail="ada@example.org"), tmp_path))
    template.has_resource_properties("AWS::SNS::Subscription", {"Protocol": "email", "Endpoint": "ada@example.org"})
    template.has_resource_properties("AWS::SNS::Topic", {"KmsMasterKeyId": Match.any_value()})
    denied = {"Effect": "Deny", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    template.has_resource_properties(
        "AWS::SNS::TopicPolicy", {"PolicyDocument": {"Statement": Match.array_with([Match.object_like(denied)])}}
    )
    template.resource_count_is("AWS::Budgets::Budget", 0)


def test_a_budget_with_a_mail_address_is_also_one_of_awss(synthesise: Synthesise, tmp_path: Path) -> None:
    template = Template.from_stack(synthesise(guarded(budget=90.0, mail="ada@example.org"), tmp_path))
    template.has_resource_properties(
        "AWS::Budgets::Budget",
        {
            "Budget": {
                "BudgetLimit": {"Amount": 90, "Unit": "USD"},
                "CostFilters": {"TagKeyValue": ["user:shoal:deployment$mine"]},
            },
            "NotificationsWithSubscribers": [
                {"Notification": Match.object_like({"Threshold": percent})} for percent in (80, 100)
            ],
        },
    )


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
        told = settings(Template.from_stack(stack))
        assert (told.standing, "m5.xlarge" in told.unpriced) == (0, True)
