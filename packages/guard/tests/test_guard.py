"""`Guard` in a stack that is not a Shoal deployment: its resources, argument errors, and the deletion of the stack."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from shoal_guard.handlers.guard.observation import Observation, ObservedNode
from shoal_guard.handlers.guard.rules import GuardSettings, GuardState, decide


def cdk():
    """Return the CDK. Its import starts Node, so files do not import it."""
    import aws_cdk.assertions
    import aws_cdk.aws_autoscaling
    import aws_cdk.aws_ec2
    import aws_cdk.aws_sqs

    return aws_cdk


def shop(**options):
    """Return an empty stack. The CDK's validation of its template would take seconds."""
    return cdk().Stack(
        cdk().App(analytics_reporting=False, builtin_cloud_formation_validation=False), "Shop", **options
    )


def guarded(**options):
    from shoal_guard import Guard

    stack = shop()
    cdk().aws_sqs.Queue(stack, "Before")
    Guard(stack, "Guard", **options)
    cdk().aws_sqs.Queue(stack, "After")
    return stack


def resources_of(stack):
    return dict(cdk().assertions.Template.from_stack(stack).to_json()["Resources"])


def settings_of(stack):
    (function,) = (each for each in resources_of(stack).values() if each["Type"] == "AWS::Lambda::Function")
    _empty, parts = function["Properties"]["Environment"]["Variables"]["SETTINGS"]["Fn::Join"]
    return dict(json.loads("".join(part if isinstance(part, str) else "token" for part in parts)))


def machine(stack, name, kind):
    cdk().aws_ec2.CfnInstance(stack, name, instance_type=kind, image_id="ami-0a1b2c3d4e5f60718")


def group(stack, **machines):
    cdk().aws_autoscaling.CfnAutoScalingGroup(stack, "Group", min_size="0", max_size="1", **machines)


def test_other_resources_depend_on_the_guard_and_have_its_tag():
    resources = resources_of(guarded(mail="me@example.org", budget=5))
    clocks = {name for name, each in resources.items() if name.startswith("GuardClock")}
    assert len(clocks) == 2
    for name, each in resources.items():
        if name.startswith("Guard"):
            assert not {"Before", "After"} & {depended[:6] for depended in each.get("DependsOn", ())}
        else:
            assert set(each["DependsOn"]) == clocks
            assert {"Key": "shoal:guarded", "Value": "Shop"} in each["Properties"]["Tags"]
    assert {name for name in resources if name.startswith("Guard")} - clocks == set(
        resources[next(iter(clocks))]["DependsOn"]
    )


def test_resources_added_after_the_guard_are_priced():
    stack = guarded(budget=5)
    machine(stack, "Alone", "m5.xlarge")
    template = cdk().aws_ec2.CfnLaunchTemplate(stack, "Template", launch_template_data={"instanceType": "g5.xlarge"})
    named = {"launchTemplateId": template.ref, "version": "1"}
    mixed = {"launchTemplate": {"launchTemplateSpecification": named, "overrides": [{"instanceType": "g4dn.xlarge"}]}}
    group(stack, mixed_instances_policy=mixed)
    cdk().aws_ec2.CfnNatGateway(stack, "Nat", subnet_id="subnet-0a1b2c3d")
    read = settings_of(stack)
    assert read["gpu"] == pytest.approx({"m5.xlarge": 0.197, "g5.xlarge": 1.011, "g4dn.xlarge": 0.531})
    assert (read["standing"], read["unpriced"]) == (0.045, "")
    assert (read["budget"], read["max_hours"], "bucket" in read) == (5, 12, False)


def errors(stack):
    entries = cdk().assertions.Annotations.from_stack(stack).find_error("*", cdk().assertions.Match.any_value())
    return sorted(str(each.entry.data) for each in entries)


@pytest.mark.parametrize("kind", ["an unknown machine", "a nested stack", "a group of any machines"])
def test_a_budget_needs_the_price_of_everything(kind, messages):
    for dollars, refusals in ((None, 1), (0.1, 0)):
        stack = guarded(budget=5, dollars_an_hour=dollars)
        if kind == "a nested stack":
            cdk().aws_sqs.Queue(cdk().NestedStack(stack, "Nested"), "Queue")
        elif kind == "a group of any machines":
            group(stack, launch_template={"launchTemplateId": "lt-0a1b2c3d4e5f60718", "version": "1"})
        else:
            machine(stack, "Alone", "x9.huge")
        sentences = errors(stack)
        assert len(sentences) == refusals
        for each in sentences:
            messages.check(each)


def test_without_a_budget_nothing_needs_a_price():
    stack = guarded()
    machine(stack, "Alone", "x9.huge")
    assert errors(stack) == []


def in_ireland():
    from shoal_guard import Guard

    stack = shop(env=cdk().Environment(account="1" * 12, region="eu-west-1"))
    Guard(stack, "Guard", budget=5)
    machine(stack, "Alone", "g5.xlarge")
    cdk().aws_ec2.CfnEIP(stack, "Address")
    return stack


def test_an_interface_endpoint_has_a_price_in_each_of_its_subnets():
    def standing(subnets):
        stack = guarded(budget=5)
        door = {"vpc_id": "vpc-0a1b2c3d", "service_name": "s", "vpc_endpoint_type": "Interface"}
        cdk().aws_ec2.CfnVPCEndpoint(stack, "Door", **door, subnet_ids=subnets)
        return settings_of(stack)["standing"]

    assert standing(["subnet-0a1b2c3d", "subnet-1a1b2c3d"]) == pytest.approx(2 * standing(["subnet-0a1b2c3d"]))


def test_a_public_address_has_a_price_in_every_region():
    read = settings_of(in_ireland())
    assert (read["gpu"], read["standing"], read["unpriced"]) == ({"g5.xlarge": pytest.approx(1.128)}, 0.005, "")


def test_a_budget_error_names_the_types_without_a_price_in_the_region(messages):
    stack = in_ireland()
    cdk().aws_ec2.CfnNatGateway(stack, "Nat", subnet_id="subnet-0a1b2c3d")
    cdk().aws_ec2.CfnVPCEndpoint(stack, "Door", vpc_id="vpc-0a1b2c3d", service_name="s", vpc_endpoint_type="Interface")
    (error,) = errors(stack)
    messages.check(error)


@pytest.mark.parametrize(
    "options",
    [
        *({"max_hours": hours} for hours in (0, 8.5, "8", True)),
        *({"budget": dollars} for dollars in ("20", 0, float("nan"))),
        *({"mail": address} for address in (5, "me")),
        {"idle_minutes": 1},
        {"dollars_an_hour": -1.0},
    ],
    ids=str,
)
def test_an_argument_out_of_range_is_refused_by_name(options, messages):
    with messages.raises(ValueError):
        guarded(**options)


def test_the_age_of_a_stack_outside_shoal_counts_from_the_guards_first_round():
    prices = {"gpu": {"small": 1.0, "large": 8.0}, "emr": {}, "standing": 0.5}
    limits = {"max_hours": 1, "idle_minutes": 5, "budget": 100}
    settings = GuardSettings(deployment="n" * 128, stack="s", account="a", extension="e", **prices, **limits)
    assert (settings.price(settings.gpu, "small"), settings.price(settings.gpu, "unforeseen")) == (1.0, 8.0)
    first = datetime(2026, 1, 31, tzinfo=UTC)
    long_ago = first - timedelta(days=30)
    node = ObservedNode(price=1.0, since=long_ago, last_report=None)
    observed = Observation(created=long_ago, groups=["g"], nodes=[node])
    account, actions = decide(settings, first, GuardState(), observed)
    assert (account.since, account.spent, actions) == (first, 0.0, [])
    account, actions = decide(settings, first + timedelta(minutes=50), account, observed)
    (warning,) = actions
    assert (warning.kind, len(warning.subject) <= 100) == ("notify", True)
    assert "aws ssm put-parameter --overwrite --name e --value HOURS_TO_ADD_IN_ALL" in warning.text
    assert account.spent == pytest.approx(1.5 * 50 / 60)
    _account, actions = decide(settings, first + timedelta(minutes=61), account, observed)
    assert [action.kind for action in actions] == ["notify", "scale to zero", "delete"]
