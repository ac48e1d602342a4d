"""`Guard` in a stack that is not a Shoal deployment: its resources, argument errors, and the deletion of the stack."""

from datetime import UTC, datetime, timedelta

import pytest
from shoal_guard.handlers.guard.observation import Observation
from shoal_guard.handlers.guard.rules import GuardSettings, GuardState, decide


def cdk():
    """Return the CDK. Its import starts Node, so files do not import it."""
    import aws_cdk.assertions
    import aws_cdk.aws_sqs

    return aws_cdk


def guarded(**options):
    from shoal_guard import Guard

    # The CDK's validation of the template would take seconds.
    stack = cdk().Stack(cdk().App(analytics_reporting=False, builtin_cloud_formation_validation=False), "Shop")
    cdk().aws_sqs.Queue(stack, "Before")
    Guard(stack, "Guard", **options)
    cdk().aws_sqs.Queue(stack, "After")
    return stack


def resources_of(stack):
    return dict(cdk().assertions.Template.from_stack(stack).to_json()["Resources"])


def test_other_resources_depend_on_the_guard_and_have_its_tag():
    resources = resources_of(guarded(mail="me@example.org"))
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


@pytest.mark.parametrize(
    "options",
    [
        *({"max_hours": hours} for hours in (0, 8.5, "8", True)),
        *({"mail": address} for address in (5, "me")),
        {"idle_minutes": 1},
    ],
    ids=str,
)
def test_an_argument_out_of_range_is_refused_by_name(options, messages):
    with messages.raises(ValueError):
        guarded(**options)


def test_the_age_of_a_stack_outside_shoal_counts_from_the_guards_first_round():
    limits = {"max_hours": 1, "idle_minutes": 5}
    settings = GuardSettings(deployment="n" * 128, stack="s", account="a", extension="e", **limits)
    first = datetime(2026, 1, 31, tzinfo=UTC)
    long_ago = first - timedelta(days=30)
    observed = Observation(created=long_ago, groups=["g"])
    account, actions = decide(settings, first, GuardState(), observed)
    assert (account, actions) == (GuardState(since=first), [])
    account, actions = decide(settings, first + timedelta(minutes=50), account, observed)
    (warning,) = actions
    assert (warning.kind, len(warning.subject) <= 100) == ("notify", True)
    assert "aws ssm put-parameter --overwrite --name e --value HOURS_TO_ADD_IN_ALL" in warning.text
    assert "Spent" not in warning.text
    _account, actions = decide(settings, first + timedelta(minutes=61), account, observed)
    assert [action.kind for action in actions] == ["notify", "scale to zero", "delete"]
