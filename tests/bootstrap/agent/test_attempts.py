"""Nodes that come, go and return: attempts follow each other, and the run ends whole."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootstrap.agent.documents import RequestQueue
from bootstrap.agent.node_documents import RunEnd
from tests.bootstrap.agent.world import (
    FIRST,
    KEY,
    RUN,
    SECOND,
    World,
    request,
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, request())


def test_all_nodes_are_waited_for_but_not_for_ever(tmp_path: Path) -> None:
    world = World(tmp_path, request(min_nodes=1))
    world.gone.add(SECOND)
    world.pass_by(500)
    assert world.latest is None
    world.pass_by(900)
    assert world.latest is not None
    assert world.latest.instances == (FIRST,)


def test_too_few_nodes_end_the_run_in_a_sentence(tmp_path: Path) -> None:
    world = World(tmp_path, request(min_nodes=2))
    world.gone.add(SECOND)
    world.pass_by(1400)
    end = world.end()
    assert end is not None
    assert end.error == "not all nodes came, and in 10 minutes no more than 1 of at least 2 could train"


def test_a_node_that_is_lost_ends_an_attempt_and_no_run(world: World) -> None:
    world.train()
    world.lose(FIRST)  # which serves the others, and copies the results
    world.pass_by(60)
    assert world.latest is not None
    assert (world.latest.number, world.latest.instances) == (2, (SECOND,))
    assert world.latest.why == f"the node {FIRST} is gone"
    assert world.programs[SECOND].stopped == {"0a1b2c3d-1/train"}
    world.programs[SECOND].states["0a1b2c3d-1/train"] = 143
    world.train()
    assert world.programs[SECOND].running() == ["0a1b2c3d-2/train"]
    world.settle()
    assert world.end() == RunEnd(token=world.wanted.token, outcome="finished")


def test_a_node_in_the_place_of_another_leaves_the_log_of_that_one(world: World) -> None:
    def prints(instance: str, name: str, text: str) -> None:
        folder = world.agents[instance]._node.machine.logs(world.wanted)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)

    world.train()
    prints(FIRST, "node-0.log", "of the first")
    world.pass_by(10)
    world.lose(FIRST)
    world.pass_by(60)
    world.programs[SECOND].states["0a1b2c3d-1/train"] = 143
    world.train()
    prints(SECOND, "node-0-attempt-2.log", "of the second")
    world.settle()
    found = {name: world.channel.read(f"runs/{RUN}/{name}") for name in ("node-0.log", "node-0-attempt-2.log")}
    assert [each and each.text for each in found.values()] == ["of the first", "of the second"]


def test_ranks_that_fail_with_a_lost_node_go_on_without_it(world: World) -> None:
    world.train()
    world.lose(SECOND)
    world.finish(FIRST, "train", 1)
    world.pass_by(100)
    assert world.end() is None
    assert world.latest is not None
    assert world.latest.instances == (FIRST,)
    world.settle()
    assert world.end() == RunEnd(token=world.wanted.token, outcome="finished")


def test_a_node_that_comes_in_the_place_of_a_lost_one_joins(world: World) -> None:
    world.train()
    world.lose(SECOND)
    world.pass_by(60)
    world.programs[FIRST].states["0a1b2c3d-1/train"] = 143
    world.train()
    world.add(third := "i-00000003")
    world.pass_by(200)
    assert world.latest is not None
    assert (world.latest.instances, world.latest.why) == ((FIRST, third), f"the node {third} has come")
    world.programs[FIRST].states["0a1b2c3d-2/train"] = 143
    world.train()
    world.settle()
    assert world.end() == RunEnd(token=world.wanted.token, outcome="finished")


def test_a_node_that_joins_brings_the_dataset_before_the_others_stop_for_it(tmp_path: Path) -> None:
    world = World(tmp_path, request(share=None))
    world.train()
    world.lose(SECOND)
    world.pass_by(60)
    world.programs[FIRST].states["0a1b2c3d-1/train"] = 143
    world.pass_by(4)
    world.finish(FIRST, "stage")
    world.add(third := "i-00000003")
    world.pass_by(200)
    assert world.latest is not None
    assert (world.latest.number, world.programs[third].running()) == (2, ["0a1b2c3d-0/stage"])
    status = world.status(third)
    assert status is not None
    assert (status.phase, status.attempt) == ("stage", 0)
    world.programs[third].states["0a1b2c3d-0/stage"] = 1  # it is tried again
    world.pass_by(20)
    assert world.programs[third].running() == ["0a1b2c3d-0/stage"]
    machine = world.agents[third]._node.machine
    machine.data(world.wanted).parent.mkdir(parents=True)
    machine.data(world.wanted).touch()
    world.programs[third].states["0a1b2c3d-0/stage"] = 0
    world.pass_by(20)
    assert world.latest.instances == (FIRST, third)


def test_a_node_that_cannot_bring_the_dataset_does_not_end_the_run(tmp_path: Path) -> None:
    world = World(tmp_path, request(share=None))
    world.train()
    world.lose(SECOND)
    world.pass_by(60)
    world.programs[FIRST].states["0a1b2c3d-1/train"] = 143
    world.pass_by(4)
    world.finish(FIRST, "stage")
    world.add(third := "i-00000003")
    for _ in range(8):
        world.pass_by(40)
        if world.programs[third].running():
            world.programs[third].states["0a1b2c3d-0/stage"] = 1
    assert world.latest is not None
    assert (world.latest.number, world.end()) == (2, None)
    status = world.status(third)
    assert status is not None
    assert status.trouble == "it cannot bring the dataset: 0a1b2c3d-0/stage.log on it says why"


def test_attempts_that_come_no_further_end_the_run(world: World) -> None:
    for number in range(4):
        world.train()
        attempt = world.latest
        assert attempt is not None
        assert (attempt.number, attempt.fruitless) == (number + 1, number)
        world.lose(attempt.instances[1])
        world.programs[attempt.instances[0]].states[f"{attempt.name}/train"] = 143
        world.add(f"i-0000000{number + 2}")
        world.pass_by(300)
        if world.end() is not None:
            break
    end = world.end()
    assert end is not None
    assert end.error.endswith("is gone, and 3 attempts in turn have come no further than step 0")


def test_only_the_nodes_that_are_named_take_part(tmp_path: Path) -> None:
    world = World(tmp_path, request(trainers=2))
    world.ask(trainers=1, nodes=(SECOND,))
    world.pass_by(10)
    assert world.latest is not None
    assert world.latest.instances == (SECOND,)


def test_nodes_that_come_back_with_nothing_begin_another_attempt(world: World) -> None:
    world.train()
    for instance in (FIRST, SECOND):
        world.lose(instance)
        world.programs[instance].states.clear()
        world.crash(instance)
        world.gone.clear()
    world.pass_by(60)
    assert world.latest is not None
    assert (world.latest.number, world.end()) == (2, None)
    assert sorted(world.latest.instances) == [FIRST, SECOND]


@pytest.mark.parametrize("phase", ["stage", "train"])
def test_a_node_that_is_started_anew_at_once_begins_another_attempt(world: World, phase: str) -> None:
    world.train() if phase == "train" else world.pass_by(8)
    assert world.programs[FIRST].running() == [f"0a1b2c3d-1/{phase}"]
    world.lose(FIRST)
    world.crash(FIRST)
    world.gone.clear()
    world.pass_by(4)
    world.finish(SECOND, "train", 1)  # its ranks lose those of the other node
    world.pass_by(20)
    assert world.latest is not None
    assert (world.latest.number, world.latest.instances) == (2, (FIRST, SECOND))
    assert world.latest.why == f"the node {FIRST} was started anew"
    world.train()
    world.settle()
    assert world.end() == RunEnd(token=world.wanted.token, outcome="finished")


def is_slow(world: World, instance: str) -> None:
    """Have a rank of a node leave word that it is slow."""
    assert world.latest is not None
    (world.agents[instance]._node.machine.programs / world.latest.name / "slow").touch()


def test_a_slow_node_leaves_with_a_checkpoint_and_shuts_itself_down(tmp_path: Path) -> None:
    world = World(tmp_path, request(replace_slow=True))
    world.train()
    is_slow(world, SECOND)
    world.pass_by(20)
    for instance in (FIRST, SECOND):
        assert world.programs[instance].stopped == {"0a1b2c3d-1/train"}
        world.finish(instance, "train")
    world.pass_by(20)
    assert world.gone == {SECOND}
    assert world.latest is not None
    assert world.latest.instances == (FIRST,)
    assert world.latest.why == f"the node {SECOND} is slow, and replaced"
    world.add(third := "i-00000003")
    world.finish(FIRST, "stage")
    world.pass_by(300)
    assert world.latest.instances == (FIRST, third)


def test_the_others_go_on_at_once_without_a_node_that_is_shut_down(world: World) -> None:
    world.train()
    world.notices[SECOND] = "off"
    world.programs[SECOND].states["0a1b2c3d-1/train"] = 143  # systemd ends its programs, too
    world.finish(FIRST, "train")  # all ranks stop at one step
    world.pass_by(14)
    world.lose(SECOND)
    world.pass_by(4)
    assert world.latest is not None
    assert world.latest.instances == (FIRST,)
    assert world.latest.why == f"the node {SECOND} is being shut down"


@pytest.mark.parametrize("wish", [{}, {"replace_slow": True, "min_nodes": 2}])
def test_a_slow_node_stays_unless_it_is_to_be_replaced_and_the_others_are_enough(
    tmp_path: Path, wish: dict[str, Any]
) -> None:
    world = World(tmp_path, request(**wish))
    world.train()
    is_slow(world, SECOND)
    world.pass_by(80)
    assert world.latest is not None
    assert (world.latest.number, world.gone) == (1, set())
    status = world.status(SECOND)
    assert status is not None
    assert status.trouble == "a rank is much slower than others of its kind"


def test_a_run_waits_behind_the_one_before_it(world: World) -> None:
    later = replace(world.wanted, run=RUN.replace("0a1b", "ffff"), token="ffffffff")
    world.channel.write(KEY, RequestQueue(runs=(world.wanted, later)).to_json())
    world.train()
    world.settle()
    world.pass_by(30)
    assert any(name.startswith("ffffffff-1/") for name in world.programs[FIRST].started)


EVENTS = st.tuples(
    st.sampled_from(["tick", "tick", "tick", "crash", "stage", "train", "reader", "fail", "stop", "lose", "pass"]),
    st.integers(0, 3),
)


def happen(world: World, event: str, instance: str) -> None:
    running = [] if instance in world.gone else world.programs[instance].running()
    match event:
        case "tick":
            before = world.started("train")
            world.tick(instance)
            if world.started("train") != before:
                assert world.latest is not None
                name = f"{world.latest.name}/stage"
                ended = [world.programs[each].states.get(name) for each in world.latest.instances]
                assert ended == [0] * len(ended)
        case "pass":
            world.pass_by(20)
        case "crash":
            world.crash(instance)
        case "stop":
            world.ask(stop=True)
        case "lose" if len(world.programs) - len(world.gone) > 1 and instance != FIRST:
            world.lose(instance)
        case "fail" if running:
            world.programs[instance].states[running[0]] = 1
        case "stage" | "train":
            world.finish(instance, event)


@given(st.lists(EVENTS, max_size=60), st.sampled_from(["efs", None]), st.integers(0, 1))
def test_in_every_order_of_stops_crashes_losses_and_ends_an_attempt_begins_together_and_the_run_ends(
    events: list[tuple[str, int]], share: str | None, readers: int
) -> None:
    share = "efs" if readers else share
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), request(readers=readers, share=share))
        failed = stopped = False
        for event, number in events:
            instance = list(world.programs)[number % len(world.programs)]
            running = [] if instance in world.gone else world.programs[instance].running()
            failed |= event == "fail" and bool(running) and "reader" not in running[0]
            stopped |= event == "stop"
            happen(world, event, instance)
        for _ in range(8):
            world.settle()
        end = world.end()
        assert end is not None
        assert not any(each.running() for each in world.programs.values())
        if not failed:
            assert end.outcome == ("stopped" if stopped else "finished"), end


def test_ranks_stop_with_a_checkpoint_when_their_time_is_over(tmp_path: Path) -> None:
    world = World(tmp_path, request(until=100.0))
    world.train()
    world.pass_by(10)
    assert not any(programs.stopped for programs in world.programs.values())
    world.now = 100.0
    world.pass_by(10)
    assert [any("train" in each for each in programs.stopped) for programs in world.programs.values()] == [True, True]
    world.settle()
    assert (end := world.end()) is not None
    assert end.outcome == "stopped"


def test_a_node_that_aws_reclaims_has_all_stop_and_the_others_go_on_without_it(world: World) -> None:
    world.train()
    world.notices[FIRST] = "now"
    world.pass_by(20)
    assert [any("train" in each for each in programs.stopped) for programs in world.programs.values()] == [True, True]
    for instance in world.programs:
        world.finish(instance, "train", 143)
    world.pass_by(40)
    assert world.latest is not None
    assert (world.latest.number, world.latest.instances) == (2, (SECOND,))
    assert world.latest.why == f"the node {FIRST} is being reclaimed by AWS"
    world.add("i-00000002")
    world.settle()
    assert world.end() == RunEnd(token="0a1b2c3d", outcome="finished")


def test_a_node_at_risk_is_replaced_by_one_that_waits_and_not_before(world: World) -> None:
    world.train()
    world.notices[FIRST] = "soon"
    world.pass_by(100)
    assert world.latest is not None
    assert world.latest.number == 1
    world.add("i-00000002")
    world.pass_by(100)
    assert (world.latest.number, world.latest.instances) == (2, (SECOND, "i-00000002"))
    assert world.latest.why == f"the node {FIRST} is likely to be reclaimed by AWS, and replaced"


def test_the_only_node_that_is_reclaimed_is_waited_for_to_be_replaced(tmp_path: Path) -> None:
    world = World(tmp_path, request(trainers=1))
    world.train()
    world.notices[FIRST] = "now"
    world.pass_by(10)
    world.finish(FIRST, "train", 143)
    world.pass_by(10)
    assert (world.latest and world.latest.number, world.end()) == (1, None)
    world.lose(FIRST)
    world.add(SECOND)
    world.pass_by(60)
    assert world.latest is not None
    assert (world.latest.number, world.latest.instances) == (2, (SECOND,))


def test_a_node_that_was_reclaimed_before_it_had_stopped_is_not_waited_for(world: World) -> None:
    world.train()
    world.notices[FIRST] = "now"
    world.pass_by(20)
    world.lose(FIRST)
    world.finish(SECOND, "train", 143)
    world.pass_by(100)
    assert world.latest is not None
    assert (world.latest.number, world.latest.instances) == (2, (SECOND,))
