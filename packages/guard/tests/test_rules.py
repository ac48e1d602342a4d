from dataclasses import astuple, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from shoal_guard.deletion import announced_deletion, reason_of_deletion
from shoal_guard.handlers.guard.observation import (
    Observation,
    ObservedCluster,
    ObservedJob,
    ObservedMachine,
    ObservedNode,
)
from shoal_guard.handlers.guard.rules import (
    SHORTEST_NOTICE,
    GuardSettings,
    GuardState,
    SentNotice,
    charged,
    cluster_is_idle,
    decide,
)

CREATED = datetime(2026, 11, 20, 8, tzinfo=UTC)
HERE = Path(__file__).parent
SETTINGS = GuardSettings(**yaml.safe_load((HERE / "guard_settings.yaml").read_text("utf-8")))
NOTHING = Observation(created=CREATED)

minutes = st.integers(0, 2_000).map(lambda count: timedelta(minutes=count))
times = minutes.map(lambda since: CREATED + since)
machines = st.builds(ObservedMachine, price=st.floats(0, 100), since=times)
nodes = st.builds(ObservedNode, price=st.floats(0, 100), since=times, last_report=st.none() | times)
clusters = st.builds(
    ObservedCluster,
    identifier=st.just("j-1"),
    state=st.sampled_from(["STARTING", "BOOTSTRAPPING", "RUNNING", "WAITING"]),
    idle_since=times,
    idle_values=st.lists(st.sampled_from([0.0, 1.0]), max_size=8),
    machines=st.lists(machines, max_size=2),
)
jobs = st.builds(ObservedJob, name=st.just("shoal-mine-261120080000"), price=st.floats(0, 100), since=times)
observations = st.builds(
    Observation,
    created=st.just(CREATED),
    extension=st.sampled_from([0.0, 0.0, 0.5, 8.0]),
    groups=st.lists(st.sampled_from(["fast", "slow"]), unique=True),
    nodes=st.lists(nodes, max_size=3),
    persistent_groups=st.lists(st.sampled_from(["fast", "slow"]), unique=True),
    run_is_active=st.booleans(),
    ended_run=st.sampled_from(["", "mine.20260102T030405-0a1b"]),
    clusters=st.lists(clusters, max_size=1),
    jobs=st.lists(jobs, max_size=2),
    complete=st.booleans(),
)
settings = st.builds(
    lambda hours, idle, budget: replace(SETTINGS, max_hours=hours, idle_minutes=idle, budget=budget),
    st.integers(1, 30),
    st.integers(5, 120),
    st.none() | st.floats(0.01, 500),
)


CASES = yaml.safe_load((HERE / "guard_rounds.yaml").read_text("utf-8"))
"""Test cases. Each has rounds, by minutes after the stack's creation, with the observation and the expected actions.
`account` is the dollars spent and the dollars per hour."""
PARTS = {"nodes": ObservedNode, "clusters": ObservedCluster, "jobs": ObservedJob}


def observation(seen):
    def timed(part):
        return {
            key: CREATED + timedelta(minutes=each) if key in ("since", "last_report", "idle_since") else each
            for key, each in part.items()
        }

    parts = {name: [PARTS[name](**timed(each)) for each in seen[name]] for name in PARTS if name in seen}
    return Observation(created=CREATED, **{**seen, **parts})


def rounds(case):
    """Yield the guard's state after each round, and the actions of the round."""
    account = GuardState() if case.get("account", True) else None
    for each in case["rounds"]:
        using = replace(SETTINGS, **{**case.get("settings", {}), **each.get("settings", {})})
        seen = observation(each.get("seen", case.get("seen", {})))
        account, actions = decide(using, CREATED + timedelta(minutes=each["at"]), account, seen)
        counted = None if account is None else [round(account.spent, 4), account.rate]
        yield {"account": counted, "does": [[*filter(None, astuple(action))] for action in actions]}


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_each_round_of_the_table(case):
    assert list(rounds(case)) == [{name: each[name] for name in ("account", "does")} for each in case["rounds"]]


@pytest.mark.parametrize(
    ("budget", "warned", "extension", "at", "reason"),
    [
        (2, 216, 0, 240, "its budget of $2.00 will then be spent"),
        (2, 300, 0, 310, "its budget of $2.00 is spent"),
        (None, 690, 0, 720, "its life ends at 2026-11-20 20:00 UTC"),
        (None, 900, 0, 910, "its life ended at 2026-11-20 20:00 UTC"),
        (2, 210, 0, None, None),
        (None, 690, 4, None, None),
    ],
)
def test_an_announced_deletion_has_its_earliest_time_and_its_reason(budget, warned, extension, at, reason):
    using, now = replace(SETTINGS, budget=budget), CREATED + timedelta(minutes=warned)
    account, actions = decide(using, now, GuardState(), NOTHING)
    announced = announced_deletion(using, now, account, replace(NOTHING, extension=extension))
    assert (announced and (announced.at, announced.reason)) == (at and (CREATED + timedelta(minutes=at), reason))
    stop = {**account.notices, "stop": SentNotice(value=f"{using.budget or 0:.2f}", at=now)}
    stopping = announced_deletion(using, now, replace(account, notices=stop), replace(NOTHING, extension=extension))
    assert (bool(announced and announced.stops_runs), bool(stopping and stopping.stops_runs)) == (
        False,
        bool(budget and at),
    )
    if warned == 300:
        assert (actions[0].subject, "When" not in actions[0].text) == ("Guard: mine has spent its budget", True)


@pytest.mark.parametrize(("budget", "reason"), [(1234.5, "its budget of $1,234.50 is spent"), (None, "its life ended")])
def test_the_token_of_a_deletion_says_that_the_guard_deletes_and_why(budget, reason):
    using, account = replace(SETTINGS, budget=budget), GuardState()
    for hours in (2_990, 3_000):
        account, actions = decide(using, CREATED + timedelta(hours=hours), account, NOTHING)
    assert reason_of_deletion(f"{actions[-1].text}-0a1b2c3d") == reason
    assert reason_of_deletion("Console-DeleteStack-0a1b2c3d") is None


@given(settings, st.lists(st.tuples(times, observations), max_size=30))
def test_every_deletion_follows_a_warning_about_its_limit_by_ten_minutes(using, given_rounds):
    account = GuardState()
    warned = []
    for now, seen in sorted(given_rounds, key=lambda each: each[0]):
        account, actions = decide(using, now, account, seen)
        end = CREATED + timedelta(hours=using.max_hours + seen.extension)
        subjects = {action.subject for action in actions}
        warned += [(now, end)] if "Guard: mine ends soon" in subjects else []
        warned += [(now, "budget")] if any(each.endswith("spent its budget") for each in subjects) else []
        reached = [end] if now >= end else []
        reached += ["budget"] if using.budget is not None and account.spent >= using.budget else []
        if "delete" in [each.kind for each in actions]:
            assert [limit for at, limit in warned if limit in reached and now - at >= SHORTEST_NOTICE]


@given(settings, st.lists(st.tuples(times, observations), max_size=30))
def test_a_repeated_round_notifies_and_counts_once(using, given_rounds):
    account = GuardState()
    for now, seen in given_rounds:
        once, first = decide(using, now, account, seen)
        again, second = decide(using, now, once, seen)
        assert again == once
        limits = ("soon", "budget", "deleted")
        assert not [action for action in second if action.kind == "notify" and action.subject.endswith(limits)]
        assert [each for each in first if each.kind == "delete"] == [each for each in second if each.kind == "delete"]
        account = once


@given(st.lists(st.tuples(times, observations), max_size=30))
def test_the_dollars_spent_and_their_time_never_decrease(given_rounds):
    account = GuardState()
    for now, seen in given_rounds:
        after = charged(SETTINGS, now, account, seen)
        assert after.spent >= account.spent
        assert after.as_of is None or after.as_of >= (account.as_of or CREATED)
        if now <= (account.as_of or CREATED):
            assert after == account
        account = after


@given(st.lists(times, min_size=1, max_size=30), st.lists(nodes, max_size=4))
def test_the_cost_of_running_resources_does_not_depend_on_the_number_of_rounds(clock, running):
    account = GuardState()
    for now in sorted(clock):
        there = [node for node in running if node.since <= now]
        account = charged(SETTINGS, now, account, replace(NOTHING, nodes=there))
    last = max(clock)
    paid = {"stack": (last - CREATED, SETTINGS.standing)}
    paid |= {str(number): (last - node.since, node.price) for number, node in enumerate(running) if node.since <= last}
    expected = sum(time / timedelta(hours=1) * price for time, price in paid.values())
    assert account.spent == pytest.approx(expected)


@pytest.mark.parametrize("idle_minutes", [5, 30, 7_199, 7_200, 10_080])
def test_one_response_has_all_idle_values_of_any_idle_time(idle_minutes):
    using = replace(SETTINGS, idle_minutes=idle_minutes)
    assert using.idle / using.period <= 1_440
    marks = [1.0] * max(1, using.idle // using.period - 1)
    waiting = ObservedCluster(identifier="j-1", state="WAITING", idle_since=CREATED, idle_values=marks)
    assert cluster_is_idle(using, CREATED + using.idle, waiting)
