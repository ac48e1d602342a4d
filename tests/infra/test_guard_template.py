"""The guard in the template: its settings, its permissions, and whom it warns."""

import json
from pathlib import Path
from typing import Any

import pytest
from aws_cdk.assertions import Annotations, Match, Template
from shoal_guard.handlers.guard.rules import GuardSettings

from infra import cost, parts, topology
from tests.infra.invariants import Resources, of_type, references, the
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


def test_a_budget_without_prices_is_refused_but_not_a_deployment_without_budget(
    synthesise: Synthesise, tmp_path: Path
) -> None:
    priceless = {"region": "ap-southeast-3"}
    for name, guard, refusals in (("free", {}, 0), ("limited", {"budget": 90.0}, 1)):
        stack = synthesise(guarded(update=priceless, **guard), tmp_path / name)
        found = Annotations.from_stack(stack).find_error(
            "*", Match.string_like_regexp("the guard cannot enforce the budget without the prices of")
        )
        assert len(found) == refusals
        told = settings(Template.from_stack(stack).to_json()["Resources"])
        assert (told.standing, "m5.xlarge" in told.unpriced) == (0, True)
