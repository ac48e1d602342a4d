from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootstrap.nodes.capacity import (
    REPEATED,
    SPOT_SECONDS,
    GiveUp,
    GroupState,
    MoveZone,
    Refusal,
    TakeOnDemand,
    Wait,
    classify_refusal,
    next_action,
)

NO_ON_DEMAND = (
    "We currently do not have sufficient g5.xlarge capacity in the Availability Zone you requested (us-east-1a). Our "
    "system will be working on provisioning additional capacity. You can currently get g5.xlarge capacity by not "
    "specifying an Availability Zone in your request or choosing us-east-1b. Launching EC2 instance failed."
)
NO_SPOT = (
    "Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due to your request "
    "configuration. Please adjust your request and try again. Launching EC2 instance failed."
)
QUOTA = (
    "You have requested more vCPU capacity than your current vCPU limit of 4 allows for the instance bucket that the "
    "specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an "
    "adjustment to this limit. Launching EC2 instance failed."
)
NOT_OFFERED = (
    "Could not launch Spot Instances. InvalidFleetConfiguration - Your requested instance type (g5.xlarge) is not "
    "supported in your requested Availability Zone (us-east-1e). Launching EC2 instance failed."
)
FREE_PLAN = "The specified instance type is not eligible for Free Tier. Launching EC2 instance failed."
REFUSED = Refusal.PERMANENT
FULL = GroupState(name="full", instance_type="g4dn.xlarge", size=2, existing=2, spot=False)
FAST = GroupState(name="fast", instance_type="g5.xlarge", size=3, existing=1, spot=False)
SPOT = replace(FAST, name="cheap", spot=True)


def act(*groups: GroupState, seconds: float = 1, tried: tuple[str, ...] = ("us-east-1a",), zones_left: bool = True):
    return next_action(groups, seconds=seconds, tried=tried, zones_left=zones_left)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (NO_ON_DEMAND, Refusal.NO_CAPACITY),
        (NO_SPOT, Refusal.NO_SPOT),
        ("There is no Spot capacity available that matches your request. Launching EC2 ...", Refusal.NO_SPOT),
        ("InsufficientInstanceCapacity: Insufficient capacity.", Refusal.NO_CAPACITY),
        ("InsufficientInstanceCapacity: the capacity is temporarily unavailable.", Refusal.NO_CAPACITY),
        (
            "ReservationCapacityExceeded - The requested reservation does not have sufficient compatible and available "
            "capacity for this request. Launching EC2 instance failed.",
            Refusal.NO_CAPACITY,
        ),
        (QUOTA, Refusal.QUOTA),
        ("Max spot instance count exceeded. Launching EC2 instance failed.", Refusal.QUOTA),
        ("Could not launch Spot Instances. MaxSpotInstanceCountExceeded - Max spot instance ...", Refusal.QUOTA),
        ("VcpuLimitExceeded", Refusal.QUOTA),
        (NOT_OFFERED, Refusal.NOT_OFFERED),
        ("The image id '[ami-0]' does not exist. Launching EC2 instance failed.", Refusal.PERMANENT),
        (FREE_PLAN, Refusal.PERMANENT),
        ("Your account is currently being verified. Verification normally takes less than 2 hours.", Refusal.PERMANENT),
        ("This account is currently blocked and not recognized as a valid account.", Refusal.PERMANENT),
        ("You are not authorized to perform this operation. Encoded authorization failure message: 0A1b", REFUSED),
        ("Instance became unhealthy: Client.InvalidKMSKey.InvalidState: The KMS key provided is in an ...", REFUSED),
        ("", Refusal.OTHER),
    ],
)
def test_the_messages_of_aws_are_classified(message: str, kind: Refusal) -> None:
    assert classify_refusal(message) is kind


def test_nothing_is_done_while_nodes_start() -> None:
    assert act(FULL, FAST, SPOT) == Wait()


def test_a_failure_that_was_compensated_is_ignored() -> None:
    assert act(replace(FULL, refusals=(NO_ON_DEMAND,))) == Wait()


def test_after_an_unknown_failure_it_waits() -> None:
    assert act(replace(FAST, refusals=("Internal error on launch",))) == Wait()


def test_an_unknown_failure_that_comes_again_is_the_end_whatever_its_ids_are() -> None:
    refusals = tuple(f"The widget eni-0a{number} is odd (Request ID: 1{number}-ab)." for number in range(2))
    action = act(replace(FAST, refusals=refusals))
    assert isinstance(action, GiveUp)
    assert action.sentence.startswith(
        "AWS starts no g5.xlarge for 'fast', and says: \"The widget eni-0a0 is odd (Request ID: 10-ab).\"; "
    )
    assert act(replace(FAST, refusals=(*refusals[:1], "The gadget is odd."))) == Wait()


def test_what_aws_tries_again_by_itself_is_waited_for() -> None:
    for message in (
        "RequestLimitExceeded: Request limit exceeded.",
        "Internal error on launch",
        "Server.InternalError",
    ):
        assert act(replace(FAST, refusals=(message,) * 3)) == Wait()


def test_a_failure_that_lasts_is_the_end_at_once_and_says_what_to_do() -> None:
    action = act(FULL, replace(SPOT, refusals=(FREE_PLAN, NO_SPOT)))
    assert isinstance(action, GiveUp)
    quoted = "The specified instance type is not eligible for Free Tier."
    assert action.sentence.startswith(
        f"AWS starts no g5.xlarge for 'cheap', and says: \"{quoted}\"; the account has AWS's Free"
    )


KMS = "let the role AWSServiceRoleForAutoScaling use the KMS key"
BY_POLICY = (
    "You are not authorized to perform this operation. User: arn:aws:sts::1:assumed-role/AWSServiceRoleForAutoScaling/"
    "AutoScaling is not authorized to perform: ec2:RunInstances with an explicit deny in a service control policy."
)
VALIDATED = "Your request for accessing resources in this region is being validated, and you will not be able to ..."


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state", KMS),
        ("Client.InternalError: Client error on launch", KMS),
        (BY_POLICY, "a service control policy or a permissions boundary denies it"),
        (VALIDATED, "AWS verifies new accounts before"),
        ("This account is currently blocked and not recognized as a valid account.", "open a case at AWS Support"),
        ("The image id '[ami-0a1b2c3d]' does not exist.", "the image of the launch template"),
        ("Not authorized for images: [ami-0a1b2c3d]", "the image of the launch template"),
    ],
)
def test_a_refusal_that_lasts_has_advice(message: str, advice: str) -> None:
    action = act(replace(FAST, refusals=(message,)))
    assert isinstance(action, GiveUp)
    assert action.sentence.partition('"; ')[2].startswith(advice)


def test_without_spot_capacity_a_group_is_taken_on_demand() -> None:
    assert act(FULL, replace(SPOT, refusals=(NO_SPOT,))) == TakeOnDemand(("cheap",))


def test_a_spot_group_without_capacity_is_taken_on_demand_before_it_moves() -> None:
    assert act(FULL, replace(SPOT, refusals=(NO_ON_DEMAND,))) == TakeOnDemand(("cheap",))
    assert act(replace(SPOT, refusals=(NO_ON_DEMAND,)), zones_left=False) == TakeOnDemand(("cheap",))


def test_a_late_refusal_of_spot_does_not_move_a_group_that_is_on_demand() -> None:
    assert act(replace(SPOT, spot=False, refusals=(NO_SPOT,))) == TakeOnDemand(("cheap",))


def test_a_spot_group_that_stays_short_is_taken_on_demand() -> None:
    assert act(FULL, SPOT, seconds=SPOT_SECONDS) == TakeOnDemand(("cheap",))
    assert act(FULL, SPOT, seconds=SPOT_SECONDS - 1) == Wait()


def test_without_on_demand_capacity_all_move() -> None:
    assert act(replace(SPOT, refusals=(NO_SPOT,)), replace(FAST, refusals=(NO_ON_DEMAND,))) == MoveZone("fast")


def test_a_type_that_the_zone_does_not_have_is_not_asked_for_on_demand_there() -> None:
    assert act(replace(SPOT, refusals=(NOT_OFFERED,))) == MoveZone("cheap")


def test_a_quota_is_no_reason_to_change_the_zone() -> None:
    assert act(replace(FAST, refusals=(NO_ON_DEMAND,)), replace(SPOT, refusals=(NO_SPOT, QUOTA))) == GiveUp(
        "AWS refuses the account more g5.xlarge for 'cheap', and says: \"You have requested more vCPU capacity than "
        "your current vCPU limit of 4 allows for the instance bucket that the specified instance type belongs to. "
        'Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit."; '
        "ask for a higher quota in Service Quotas, or write fewer or smaller nodes into the topology"
    )


@pytest.mark.parametrize(
    ("tried", "where", "advice"),
    [
        (("us-east-1a",), "in us-east-1a now", "take another zone, another instance type or another region"),
        (
            ("us-east-1b", "us-east-1c", "us-east-1a"),
            "in us-east-1b, us-east-1c and us-east-1a now",
            "take another inst",
        ),
    ],
)
def test_after_the_last_zone_it_gives_up(tried: tuple[str, ...], where: str, advice: str) -> None:
    message = act(replace(FAST, refusals=(NO_ON_DEMAND,)), tried=tried, zones_left=False)
    assert isinstance(message, GiveUp)
    assert message.sentence.startswith(f"AWS has no g5.xlarge for 'fast' {where}, and says: \"We currently do not have")
    assert f'choosing us-east-1b."; try again later, or {advice}' in message.sentence


GROUPS = st.lists(
    st.builds(
        GroupState,
        name=st.sampled_from(["one", "two"]),
        instance_type=st.just("g5.xlarge"),
        size=st.integers(1, 4),
        existing=st.integers(0, 4),
        spot=st.booleans(),
        refusals=st.lists(st.sampled_from([NO_ON_DEMAND, NO_SPOT, QUOTA, NOT_OFFERED, "?"])).map(tuple),
    ),
    min_size=1,
)


@given(GROUPS, st.floats(0, 2 * SPOT_SECONDS), st.booleans())
def test_every_action_has_its_reason(groups: list[GroupState], seconds: float, zones_left: bool) -> None:
    action = next_action(groups, seconds=seconds, tried=["us-east-1a"], zones_left=zones_left)
    short = [group for group in groups if group.short]
    quota = any(classify_refusal(message) is Refusal.QUOTA for group in short for message in group.refusals)
    match action:
        case Wait():
            assert not quota
        case TakeOnDemand(names):
            assert names
            assert all(any(group.name == name and (group.spot or group.refusals) for group in short) for name in names)
        case MoveZone(name):
            assert zones_left
            assert not quota
            assert any(group.name == name and group.refusals for group in short)
        case GiveUp(_):
            assert quota or not zones_left or any(group.refusals.count("?") >= REPEATED for group in short)
    if not short:
        assert action == Wait()
