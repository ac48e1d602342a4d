"""Nodes that are started anew, shut down, slow or reclaimed: the others go on at once, and lose no step."""

from pathlib import Path
from typing import Any

import pytest

from bootstrap.agent import documents
from bootstrap.agent.node_documents import RunEnd
from tests.bootstrap.agent.world import FIRST, RUN, SECOND, World, request
from trainer.output.run_files import CHECKPOINTS


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


@pytest.mark.parametrize("phase", ["stage", "train"])
@pytest.mark.parametrize("status", [-15, 143])
def test_a_program_that_a_shutdown_ends_is_no_failure_of_the_run(world: World, phase: str, status: int) -> None:
    world.train() if phase == "train" else world.pass_by(8)
    name = f"0a1b2c3d-1/{phase}"
    assert name in world.programs[FIRST].running()
    world.programs[FIRST].states[name] = status
    world.pass_by(6)
    world.finish(SECOND, "train", 1)  # its ranks lose those of the other node
    world.pass_by(20)
    assert (world.latest and world.latest.number, world.end()) == (2, None)


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


def test_a_node_that_aws_reclaims_has_all_stop_and_the_others_go_on_without_it(world: World) -> None:
    world.train()
    world.channel.write(f"{documents.RUNS}{RUN}/{CHECKPOINTS}/step-000000007.pt", "")
    world.notices[FIRST] = "now"
    world.pass_by(20)
    assert [any("train" in each for each in programs.stopped) for programs in world.programs.values()] == [True, True]
    for instance in world.programs:
        world.finish(instance, "train", 143)
    world.pass_by(40)
    assert world.latest is not None
    assert (world.latest.number, world.latest.instances, world.latest.step) == (2, (SECOND,), 7)
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
