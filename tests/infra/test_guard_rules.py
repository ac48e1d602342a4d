"""What the guard decides: when it warns, deletes, ends what is idle, and how it counts dollars."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.handlers.guard.rules import (
    BOOT,
    NOTICE,
    SHORTEST_NOTICE,
    STOPPING,
    Action,
    GuardSettings,
    GuardState,
    Observation,
    ObservedCluster,
    ObservedJob,
    ObservedMachine,
    ObservedNode,
    charged,
    cluster_is_idle,
    decide,
    node_is_idle,
)

CREATED = datetime(2026, 11, 20, 8, tzinfo=UTC)
SETTINGS = GuardSettings(
    deployment="mine",
    stack="the stack",
    bucket="the-bucket",
    keep=False,
    nodes_prefix="nodes/",
    requests="requests/mine.json",
    start_tag="shoal:start",
    account="/shoal/mine/guard",
    extension="/shoal/mine/extension",
    max_hours=12,
    idle_minutes=30,
    gpu={},
    emr={},
    standing=0.5,
)
END = CREATED + timedelta(hours=12)
NOTHING = Observation(created=CREATED)

minutes = st.integers(0, 2_000).map(lambda count: timedelta(minutes=count))
times = minutes.map(lambda since: CREATED + since)
machines = st.builds(ObservedMachine, price=st.floats(0, 100), since=times)
nodes = st.builds(ObservedNode, price=st.floats(0, 100), since=times, sign=st.none() | times)
clusters = st.builds(
    ObservedCluster,
    identifier=st.just("j-1"),
    state=st.sampled_from(["STARTING", "BOOTSTRAPPING", "RUNNING", "WAITING"]),
    quiet_since=times,
    marks=st.lists(st.sampled_from([0.0, 1.0]), max_size=8),
    machines=st.lists(machines, max_size=2),
)
jobs = st.builds(ObservedJob, name=st.just("shoal-mine-261120080000"), price=st.floats(0, 100), since=times)
sights = st.builds(
    Observation,
    created=st.just(CREATED),
    extension=st.sampled_from([0.0, 0.0, 0.5, 8.0]),
    groups=st.lists(st.sampled_from(["fast", "slow"]), unique=True),
    nodes=st.lists(nodes, max_size=3),
    staying=st.lists(st.sampled_from(["fast", "slow"]), unique=True),
    running=st.booleans(),
    over=st.sampled_from(["", "mine.20260102T030405-0a1b"]),
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


def hours(count: float) -> datetime:
    return CREATED + timedelta(hours=count)


def kinds(actions: list[Action]) -> list[str]:
    return [action.kind for action in actions]


def rounds(
    *clock: datetime, seen: Observation = NOTHING, using: GuardSettings = SETTINGS
) -> tuple[GuardState, list[list[Action]]]:
    """The account after rounds at these times, and what each round did."""
    account: GuardState | None = GuardState()
    done = []
    for now in clock:
        account, actions = decide(using, now, account, seen)
        done.append(actions)
    assert account is not None
    return account, done


# The end


def test_the_end_is_warned_of_once_and_reached_half_an_hour_later() -> None:
    _, done = rounds(
        END - NOTICE - timedelta(minutes=1), END - NOTICE, END - timedelta(minutes=1), END, END + timedelta(minutes=5)
    )
    assert [kinds(actions) for actions in done] == [[], ["tell"], [], ["tell", "delete"], ["delete"]]
    (warning,) = done[1]
    assert warning.subject == "Shoal: mine ends soon"
    assert warning.text == (
        "The deployment 'mine' ends at 2026-11-20 20:00 UTC, 12 hours after it was created. Then all its nodes are "
        "ended and its stack is deleted. To keep it longer: shoal extend mine --hours 4\n"
        "Models and datasets are deleted with it. To keep a model: shoal fetch mine --output FOLDER\n"
        "Spent so far, at most: $5.75."
    )
    assert done[3][1] == Action(kind="delete", subject="the stack")


def test_what_has_no_price_is_named_beside_what_was_spent() -> None:
    settings = replace(SETTINGS, unpriced="EMR on m5.xlarge")
    (_, (warning,)) = decide(settings, END - NOTICE, GuardState(), Observation(created=CREATED))
    assert warning.text.endswith(", besides what has no price known to it (EMR on m5.xlarge).")


def test_a_late_warning_still_leaves_ten_minutes() -> None:
    late = END + timedelta(hours=3)
    _, done = rounds(late, late + timedelta(minutes=5), late + timedelta(minutes=10))
    assert [kinds(actions) for actions in done] == [["tell"], [], ["tell", "delete"]]
    assert "ends at 2026-11-20 23:10 UTC" in done[0][0].text


def test_added_hours_move_the_end_and_its_warning() -> None:
    _, (first,) = rounds(END - NOTICE)
    assert kinds(first) == ["tell"]
    longer = replace(NOTHING, extension=2.0)
    _, done = rounds(END - NOTICE, END, hours(13.5), hours(14), seen=longer)
    assert [kinds(actions) for actions in done] == [[], [], ["tell"], ["tell", "delete"]]


def test_a_warning_counts_for_no_other_end() -> None:
    account, _ = rounds(END - NOTICE)
    moved, actions = decide(SETTINGS, END, account, replace(NOTHING, extension=0.25))
    assert kinds(actions) == ["tell"]
    assert moved is not None
    away, _ = decide(SETTINGS, END, account, replace(NOTHING, extension=5.0))
    _, actions = decide(SETTINGS, END + timedelta(minutes=5), away, NOTHING)
    assert kinds(actions) == ["tell"]


@pytest.mark.parametrize(
    ("keep", "said"),
    [
        (True, "The bucket the-bucket is kept, with its datasets and models."),
        (
            None,
            "If the bucket the-bucket holds runs that were not fetched, it is kept, with its datasets and models, and "
            "continues to cost money; else it is deleted with it. To fetch the runs: shoal fetch mine --output FOLDER",
        ),
    ],
)
def test_what_stays_is_told(keep: bool | None, said: str) -> None:
    _, (actions,) = rounds(END - NOTICE, using=replace(SETTINGS, keep=keep))
    assert said in actions[0].text


def test_at_the_end_what_costs_most_ends_even_if_the_stack_cannot() -> None:
    busy = ObservedCluster(identifier="j-1", state="RUNNING", quiet_since=END)
    seen = replace(
        NOTHING, groups=["fast", "slow"], nodes=[ObservedNode(price=1, since=END, sign=END)], clusters=[busy]
    )
    _, (_, actions) = rounds(END - NOTICE, END, seen=seen)
    assert [(action.kind, action.subject) for action in actions[1:]] == [
        ("lower", "fast"),
        ("lower", "slow"),
        ("terminate", "j-1"),
        ("delete", "the stack"),
    ]


def test_without_an_account_nothing_is_deleted_but_what_is_idle_ends() -> None:
    seen = replace(NOTHING, groups=["fast"], nodes=[ObservedNode(price=1, since=CREATED, sign=CREATED)])
    account, actions = decide(SETTINGS, END, None, seen)
    assert account is None
    assert kinds(actions) == ["tell", "lower"]


@given(settings, st.lists(st.tuples(times, sights), max_size=30))
def test_nothing_is_deleted_without_a_warning_ten_minutes_old_about_the_limit_that_is_reached(
    using: GuardSettings, given_rounds: list[tuple[datetime, Observation]]
) -> None:
    account: GuardState | None = GuardState()
    warned: list[tuple[datetime, object]] = []
    for now, seen in sorted(given_rounds, key=lambda each: each[0]):
        account, actions = decide(using, now, account, seen)
        assert account is not None
        end = CREATED + timedelta(hours=using.max_hours + seen.extension)
        subjects = {action.subject for action in actions}
        warned += [(now, end)] if "Shoal: mine ends soon" in subjects else []
        warned += [(now, "budget")] if "Shoal: mine has nearly spent its budget" in subjects else []
        reached: list[object] = [end] if now >= end else []
        reached += ["budget"] if using.budget is not None and account.spent >= using.budget else []
        if "delete" in kinds(actions):
            assert [limit for at, limit in warned if limit in reached and now - at >= SHORTEST_NOTICE]


@given(settings, st.lists(st.tuples(times, sights), max_size=30))
def test_the_same_round_twice_tells_and_counts_once(
    using: GuardSettings, given_rounds: list[tuple[datetime, Observation]]
) -> None:
    account = GuardState()
    for now, seen in given_rounds:
        once, first = decide(using, now, account, seen)
        again, second = decide(using, now, once, seen)
        assert again == once
        limits = ("soon", "budget", "deleted")
        assert not [action for action in second if action.kind == "tell" and action.subject.endswith(limits)]
        assert [each for each in first if each.kind == "delete"] == [each for each in second if each.kind == "delete"]
        assert once is not None
        account = once


# The budget


def test_the_budget_is_warned_of_at_nine_tenths_and_ends_the_deployment_when_it_is_spent() -> None:
    using = replace(SETTINGS, budget=2.0)
    _, done = rounds(hours(3.5), hours(3.6), hours(3.9), hours(4), hours(4.1), using=using)
    assert [kinds(actions) for actions in done] == [[], ["tell"], [], ["tell", "delete"], ["delete"]]
    assert "has spent about $1.80 of its budget of $2.00, and spends $0.50 an hour now" in done[1][0].text
    assert "its budget of $2.00 is spent" in done[3][0].text


def test_a_raised_budget_is_warned_of_again() -> None:
    account, _ = rounds(hours(3.6), using=replace(SETTINGS, budget=2.0))
    _, actions = decide(replace(SETTINGS, budget=2.02), hours(4), account, NOTHING)
    assert kinds(actions) == ["tell"]


@given(st.lists(st.tuples(times, sights), max_size=30))
def test_what_was_spent_never_falls_and_its_time_never_goes_back(
    given_rounds: list[tuple[datetime, Observation]],
) -> None:
    account = GuardState()
    for now, seen in given_rounds:
        after = charged(SETTINGS, now, account, seen)
        assert after.spent >= account.spent
        assert after.as_of is None or after.as_of >= (account.as_of or CREATED)
        if now <= (account.as_of or CREATED):
            assert after == account
        account = after


@given(st.lists(times, min_size=1, max_size=30), st.lists(nodes, max_size=4))
def test_however_often_one_looks_what_runs_all_the_time_costs_its_hours(
    clock: list[datetime], running: list[ObservedNode]
) -> None:
    account = GuardState()
    for now in sorted(clock):
        there = [node for node in running if node.since <= now]
        account = charged(SETTINGS, now, account, replace(NOTHING, nodes=there))
    last = max(clock)
    paid = {"stack": (last - CREATED, SETTINGS.standing)}
    paid |= {str(number): (last - node.since, node.price) for number, node in enumerate(running) if node.since <= last}
    expected = sum(time / timedelta(hours=1) * price for time, price in paid.values())
    assert account.spent == pytest.approx(expected)


def test_what_has_gone_since_counts_until_now() -> None:
    node = ObservedNode(price=4.0, since=CREATED)
    account = charged(SETTINGS, hours(1), GuardState(), replace(NOTHING, nodes=[node]))
    assert (account.spent, account.rate) == (4.5, 4.5)
    gone = charged(SETTINGS, hours(2), account, NOTHING)
    assert (gone.spent, gone.rate) == (9.0, 0.5)


def test_what_could_not_be_seen_goes_on_costing() -> None:
    node = ObservedNode(price=4.0, since=CREATED)
    account = charged(SETTINGS, hours(1), GuardState(), replace(NOTHING, nodes=[node]))
    blind = charged(SETTINGS, hours(2), account, replace(NOTHING, complete=False))
    assert (blind.spent, blind.rate) == (9.0, 4.5)


# Idleness


def test_a_node_is_idle_when_start_report_and_work_are_all_long_ago() -> None:
    node = ObservedNode(price=1, since=CREATED, sign=CREATED + timedelta(minutes=10))
    assert not node_is_idle(SETTINGS, CREATED + timedelta(minutes=39), node)
    assert node_is_idle(SETTINGS, CREATED + timedelta(minutes=40), node)


def test_a_node_that_has_not_reported_may_be_booting() -> None:
    impatient = replace(SETTINGS, idle_minutes=5)
    silent = ObservedNode(price=1, since=CREATED)
    assert not node_is_idle(impatient, CREATED + BOOT - timedelta(minutes=1), silent)
    assert node_is_idle(impatient, CREATED + BOOT, silent)
    assert node_is_idle(impatient, CREATED + BOOT, replace(silent, sign=CREATED + timedelta(minutes=2)))


@given(settings, times, st.lists(nodes, min_size=1, max_size=4))
def test_groups_are_lowered_all_together_and_only_when_every_node_is_idle(
    using: GuardSettings, now: datetime, running: list[ObservedNode]
) -> None:
    seen = replace(NOTHING, groups=["fast", "slow"], nodes=running)
    _, actions = decide(using, now, None, seen)
    lowered = [action.subject for action in actions if action.kind == "lower"]
    assert lowered == (["fast", "slow"] if all(node_is_idle(using, now, node) for node in running) else [])


def test_nodes_whose_run_has_ended_are_ended_at_once_but_for_those_that_stay() -> None:
    working = ObservedNode(price=1, since=CREATED, sign=hours(5))
    over = replace(
        NOTHING, groups=["fast", "slow"], staying=["slow"], nodes=[working], over="mine.20260102T030405-0a1b"
    )
    _, actions = decide(SETTINGS, hours(5), None, over)
    assert [action.subject for action in actions if action.kind == "lower"] == ["fast"]
    assert "--run mine.20260102T030405-0a1b" in next(action.text for action in actions if action.kind == "tell")
    _, actions = decide(SETTINGS, hours(5), None, replace(over, over=""))
    assert actions == []


def test_runs_are_asked_to_stop_and_waited_for_before_all_is_deleted() -> None:
    working = ObservedNode(price=1, since=CREATED, sign=END)
    seen = replace(NOTHING, groups=["fast"], nodes=[working], running=True)
    account, actions = decide(SETTINGS, END - timedelta(minutes=20), GuardState(), seen)
    assert [action.kind for action in actions] == ["tell"]
    account, actions = decide(SETTINGS, END, account, seen)
    assert actions == [Action(kind="stop", subject="requests/mine.json")]
    account, again = decide(SETTINGS, END + timedelta(minutes=5), account, seen)
    assert again == actions
    _, unseen = decide(SETTINGS, END + timedelta(minutes=5), account, replace(seen, nodes=[], complete=False))
    assert unseen == actions
    _, without = decide(SETTINGS, END + timedelta(minutes=5), account, replace(seen, nodes=[]))
    assert "delete" in kinds(without)
    _, stopped = decide(SETTINGS, END + timedelta(minutes=5), account, replace(seen, running=False))
    _, late = decide(SETTINGS, END + STOPPING, account, seen)
    for actions in (stopped, late):
        assert [action.kind for action in actions] == ["tell", "lower", "delete"]


def test_groups_that_ask_for_nodes_and_have_none_yet_go_on_asking() -> None:
    _, actions = decide(SETTINGS, hours(5), None, replace(NOTHING, groups=["fast"]))
    assert actions == []


WAITING = ObservedCluster(identifier="j-1", state="WAITING", quiet_since=CREATED, marks=[1.0] * 6)


def test_a_cluster_that_waited_all_the_time_is_ended() -> None:
    _, actions = decide(SETTINGS, hours(0.5), GuardState(), replace(NOTHING, clusters=[WAITING]))
    assert kinds(actions) == ["tell", "terminate"]
    assert actions[1].subject == "j-1"


@pytest.mark.parametrize(
    "at_work",
    [
        replace(WAITING, state="RUNNING"),
        replace(WAITING, quiet_since=CREATED + timedelta(minutes=1)),
        replace(WAITING, marks=[1.0, 1.0, 0.0, 1.0, 1.0, 1.0]),
        replace(WAITING, marks=[1.0] * 3),
        replace(WAITING, marks=[]),
    ],
    ids=["runs a step", "ended a step lately", "worked between", "is not marked yet", "is not marked at all"],
)
def test_a_cluster_is_not_idle_that(at_work: ObservedCluster) -> None:
    assert cluster_is_idle(SETTINGS, hours(0.5), WAITING)
    assert not cluster_is_idle(SETTINGS, hours(0.5), at_work)


@pytest.mark.parametrize("idle_minutes", [5, 30, 7_199, 7_200, 10_080])
def test_the_marks_of_any_idle_time_come_in_one_answer(idle_minutes: int) -> None:
    using = replace(SETTINGS, idle_minutes=idle_minutes)
    assert using.idle / using.period <= 1_440
    marks = [1.0] * max(1, using.idle // using.period - 1)
    assert cluster_is_idle(using, CREATED + using.idle, replace(WAITING, marks=marks))


def test_a_training_job_counts_and_stops_with_a_checkpoint_before_all_is_deleted() -> None:
    job = ObservedJob(name="shoal-mine-261120200000", price=2.0, since=hours(11))
    seen = replace(NOTHING, jobs=[job])
    account, (_, _, first, second) = rounds(END - NOTICE, END, END + STOPPING / 2, END + STOPPING, seen=seen)
    assert first == [Action(kind="stop job", subject=job.name)]
    assert kinds(second)[-1] == "delete"
    assert account.spent >= 2.0
    _, (*_, after) = rounds(END - NOTICE, END)
    assert kinds(after)[-1] == "delete"
