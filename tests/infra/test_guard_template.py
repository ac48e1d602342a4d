import json

import pytest
from shoal_guard.handlers.guard.rules import GuardSettings

from infra import cost, parts, topology
from tests.infra.invariants import of_type, references, the
from tests.infra.variants import SHIPPED


def guarded(*, update=None, **guard):
    spec = topology.load("demo", SHIPPED)
    return spec.model_copy(update={"guard": parts.GuardSpec(**guard), **(update or {})})


def settings(resources):
    """Return the function's settings. Values that are unknown before the deployment are logical IDs."""
    parts = the(resources, "AWS::Lambda::Function", "GuardFunction")[1]["Environment"]["Variables"]["SETTINGS"][
        "Fn::Join"
    ][1]
    text = "".join(part if isinstance(part, str) else next(iter(references(part))) for part in parts)
    return GuardSettings(**json.loads(text))


def test_the_settings_have_limits_and_prices(templates):
    spec = guarded(max_hours=7, idle_minutes=45, budget=90.0, mail="ada@example.org")
    resources = templates.resources(spec)
    values = settings(resources)
    assert (values.deployment, values.stack, values.keep) == ("mine", "AWS::StackId", None)
    assert (values.max_hours, values.idle_minutes, values.budget) == (7, 45, 90.0)
    assert values.bucket in of_type(resources, "AWS::S3::Bucket")
    assert values.topic in of_type(resources, "AWS::SNS::Topic")
    assert (values.account, values.extension) == ("/shoal/mine/guard", "/shoal/mine/extension")
    workers = sum(group.count for _, group in spec.preprocessing.workers)
    running = sum(values.gpu[group.instance_type] * group.count for group in spec.training)
    running += values.emr["m5.xlarge"] * (1 + workers) + values.standing
    assert running == pytest.approx(cost.hourly(spec))


def test_the_settings_have_the_price_of_readers(templates):
    spec = topology.load("embeddings-4x1gpu-2readers", SHIPPED)
    values = settings(templates.resources(spec))
    assert 4 * values.gpu["g4dn.xlarge"] + 2 * values.gpu["m5.xlarge"] + values.standing == pytest.approx(
        cost.hourly(spec)
    )


def test_items_without_prices_are_named_and_cost_nothing(templates):
    values = settings(templates.resources(guarded(update={"region": "ap-southeast-3"})))
    assert (values.standing, "m5.xlarge" in values.unpriced) == (0, True)
