"""Nodes that come, go and return: attempts follow each other, and the run ends whole."""

import tempfile
from dataclasses import replace
from pathlib import Path

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


def joined(folder: Path) -> tuple[World, str]:
    """Nodes with disks of their own, one of which was lost, and the node that has come in its place."""
    world = World(folder, request(share=None))
    world.train()
    world.lose(SECOND)
    world.pass_by(60)
    world.programs[FIRST].states["0a1b2c3d-1/train"] = 143
    world.pass_by(4)
    world.finish(FIRST, "stage")
    world.add(third := "i-00000003")
    return world, third


def test_a_node_that_joins_brings_the_dataset_before_the_others_stop_for_it(tmp_path: Path) -> None:
    world, third = joined(tmp_path)
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
    world, third = joined(tmp_path)
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


def test_a_run_waits_behind_the_one_before_it(world: World) -> None:
    later = replace(world.wanted, run=RUN.replace("0a1b", "ffff"), token="ffffffff")
    world.channel.write(KEY, RequestQueue(runs=(world.wanted, later)).to_json())
    world.train()
    world.settle()
    world.pass_by(30)
    assert any(name.startswith("ffffffff-1/") for name in world.programs[FIRST].started)


EVENTS = st.tuples(
    st.sampled_from(
        [*["tick"] * 3, "crash", "stage", "train", "reader", "fail", "stop", "lose", "pass", "join", "cut", "mend"]
    ),
    st.integers(0, 3),
)
MOST_NODES = 5


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
        case "fail" if running:
            world.programs[instance].states[running[0]] = 1
        case "stage" | "train":
            world.finish(instance, event)
        case _:
            change_nodes(world, event, instance)


def change_nodes(world: World, event: str, instance: str) -> None:
    others = world.programs.keys() - {instance} - world.gone
    match event:
        case "lose" if any(world.agents[each]._node.gpus for each in others):
            world.lose(instance)
        case "join" if len(world.programs) < MOST_NODES:
            world.add(f"i-0000000{len(world.programs)}")
        case "cut":
            world.cut.add(instance)
        case "mend":
            world.cut.discard(instance)


@given(st.lists(EVENTS, max_size=60), st.sampled_from(["efs", None]), st.integers(0, 1))
def test_in_every_order_of_stops_crashes_losses_arrivals_and_ends_an_attempt_begins_together_and_the_run_ends(
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
        world.cut.clear()
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
