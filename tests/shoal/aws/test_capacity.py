"""Kinds of AWS's refusals, and the actions for nodes that AWS does not start."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shoal.aws.capacity import (
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

TABLE = yaml.safe_load(Path(__file__).with_name("capacity.yaml").read_text())
FAST = GroupState(name="fast", instance_type="g5.xlarge", size=3, existing=1, spot=False)
GROUPS_OF_THE_TABLE = {
    "full": GroupState(name="full", instance_type="g4dn.xlarge", size=2, existing=2, spot=False),
    "fast": FAST,
    "cheap": replace(FAST, name="cheap", spot=True),
    "on demand by now": replace(FAST, name="on demand by now"),
}


@pytest.mark.parametrize(
    ("message", "kind"), [(message, kind) for kind, messages in TABLE["kinds"].items() for message in messages]
)
def test_messages_of_aws_are_classified(message, kind):
    assert classify_refusal(message) is Refusal(kind)


@pytest.mark.parametrize("row", TABLE["actions"], ids=lambda row: row["about"])
def test_missing_nodes_cause_this_action(row, messages):
    groups = [replace(GROUPS_OF_THE_TABLE[name], refusals=tuple(refusals)) for name, refusals in row["groups"].items()]
    more = {"seconds": row.get("seconds", 1), "zones_left": row.get("zones_left", True)}
    match next_action(groups, tried=row.get("tried", ["us-east-1a"]), **more):
        case TakeOnDemand(names):
            done = f"on demand: {', '.join(names)}"
        case MoveZone(name):
            done = f"another zone, for {name}"
        case GiveUp(sentence):
            done = "give up"
            messages.check(sentence)
        case Wait():
            done = "wait"
    assert done == row["done"]


PASSING = [TABLE["messages"][name] for name in ("no on-demand", "no spot", "quota", "not offered")]
GROUPS = st.lists(
    st.builds(
        GroupState,
        name=st.sampled_from(["one", "two"]),
        instance_type=st.just("g5.xlarge"),
        size=st.integers(1, 4),
        existing=st.integers(0, 4),
        spot=st.booleans(),
        refusals=st.lists(st.sampled_from([*PASSING, "?"])).map(tuple),
    ),
    min_size=1,
)


@given(GROUPS, st.floats(0, 2 * SPOT_SECONDS), st.booleans())
def test_every_action_has_a_reason(groups, seconds, zones_left):
    action = next_action(groups, seconds=seconds, tried=["us-east-1a"], zones_left=zones_left)
    short = [group for group in groups if group.lacks_nodes]
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
