"""Agents of several nodes: in any order of events, the nodes start a run together and finish it."""

import itertools
import json

import pytest
from botocore.exceptions import EndpointConnectionError

from bootstrap.node.documents import RequestDocument
from bootstrap.node.machine import Machine
from common import names
from tests.bootstrap.node.test_progress import start as start_line
from tests.bootstrap.node.test_progress import step
from tests.bootstrap.node.world import FIRST, KEY, RUN, SECOND, World, request
from trainer.output.run_files import RECORD


def test_a_node_reports_the_step_and_attempt_of_the_record_even_after_its_agent_died(world):
    world.train()
    record = Machine(root=world.root / FIRST).run(world.request) / RECORD

    def reported(*lines):
        with record.open("a") as file:
            file.write("".join(lines))
        world.pass_by(70)
        return world.status(FIRST).step, world.status(FIRST).starts

    lines = (start_line(1.0), *(step(number, 1.0) for number in (1, 7, 8, 9)))
    start, *steps = (f"{json.dumps(each.plain())}\n" for each in lines)
    assert reported() == (None, None)
    assert reported(start, *steps[:2], steps[2][:-5]) == (7, 1)
    assert reported("\n", steps[2].replace("8", '"x"'), start) == (7, 2)
    world.crash(FIRST)
    assert reported(steps[3]) == (9, 2)
    record.write_text(start)
    assert reported() == (None, 1)


@pytest.mark.parametrize("trainers", [1, 2])
def test_ranks_of_several_nodes_bind_to_the_private_address_of_their_node(trainers, tmp_path, monkeypatch):
    monkeypatch.setattr("bootstrap.node.programs.device_of", {"10.0.0.1": "ens5"}.get)
    world = World(tmp_path, request(trainers=trainers))
    world.train()
    devices = {world.programs[FIRST].environment.get(f"{each}_SOCKET_IFNAME") for each in ("GLOO", "NCCL")}
    assert devices == {"ens5" if trainers > 1 else None}


def test_a_later_attempt_resumes_without_force_and_slows_only_ranks_that_are_left(tmp_path):
    world = World(tmp_path, request(options={"force": (), "slow": ("0:2.0", "1:3.0")}))

    def options():
        """Return the options of the ranks of the first node, each with its values."""
        words = " ".join(world.programs[FIRST].arguments).split(" --")
        return {name: values for name, *values in map(str.split, words) if name in ("force", "resume", "slow")}

    world.train()
    assert options() == {"force": [], "slow": ["0:2.0", "1:3.0"]}
    world.lose(SECOND)
    world.pass_by(60)
    world.finish(FIRST, "train", 143)
    world.train()
    assert options() == {"resume": [], "slow": ["0:2.0"]}


def test_a_node_that_cannot_copy_its_data_ends_the_run_with_its_error(world):
    world.pass_by(15)
    logs = world.root / FIRST / "var/lib/shoal/programs" / f"{world.request.token}-1"
    (logs / "stage.log").write_text("the disk is full\n")
    world.finish(FIRST, "stage", 1)
    world.settle()
    assert world.phases() == ["failed", "done"]
    assert world.status(FIRST).error == "the disk is full"
    assert world.started("train") == [False, False]


def test_readers_run_until_all_ranks_have_ended_and_then_the_stream_is_removed(tmp_path):
    world = World(tmp_path, request(readers=1))
    world.train()
    reader = "i-00000002"
    world.tick(reader)
    assert world.programs[reader].running() == [f"{world.request.token}-1/reader-{number}" for number in (0, 1)]
    world.finish(SECOND, "train")
    world.pass_by(27)
    assert not world.programs[reader].stopped
    (tmp_path / FIRST / "mnt/share/runs" / RUN / "summary.json").write_text('{"stopped": false}')
    (stream := tmp_path / FIRST / "mnt/share/streams" / RUN).mkdir(parents=True)
    world.settle()
    assert world.phases() == ["done"] * 3
    assert not stream.exists()


def test_a_reader_that_dies_repeatedly_ends_the_run(tmp_path, messages):
    world = World(tmp_path, request(trainers=1, readers=1))
    reader = "i-00000001"
    for _ in range(60):
        for instance in world.programs:
            world.tick(instance)
            world.finish(instance, "stage")
            world.finish(instance, "reader-1", 1)
            for name in world.programs[instance].stopped:
                world.programs[instance].states[name] = 143
    assert world.phases() == ["done", "failed"]
    messages.check(world.status(reader).error)
    assert sum(name.endswith("reader-1") for name in world.programs[reader].started) == 4


def test_a_request_of_another_version_is_refused_in_the_status(world, messages):
    world.channel.write(KEY, RequestDocument(runs=(world.request,)).to_json().replace('"version": 2', '"version": 3'))
    world.tick(FIRST)
    assert world.status(FIRST).phase == "failed"
    messages.check(world.status(FIRST).error)
    assert world.started("stage") == [False, False]


def test_a_refusal_that_the_bucket_did_not_take_is_reported_later(world, monkeypatch):
    world.channel.write(KEY, RequestDocument(runs=(world.request,)).to_json().replace('"version": 2', '"version": 3'))
    with monkeypatch.context() as patched:
        patched.setattr(world.channel, "write", unanswered)
        world.tick(FIRST)
    assert world.status(FIRST) is None
    world.tick(FIRST)
    assert world.status(FIRST).phase == "failed"


def test_results_that_the_bucket_did_not_take_are_copied_later(world, monkeypatch):
    world.train()
    (Machine(root=world.root / FIRST).run(world.request) / RECORD).write_text("the record")
    with monkeypatch.context() as patched:
        patched.setattr(world.channel, "put", unanswered)
        world.settle()
    assert (world.end(), world.phases()) == (None, ["end", "done"])
    world.settle()
    assert world.end().outcome == "finished"
    assert world.channel.read(f"{names.RUNS}{RUN}/{RECORD}").text == "the record"


def unanswered(*_):
    raise EndpointConnectionError(endpoint_url="s3")


def test_programs_of_another_launch_end_before_the_next_starts(world):
    world.pass_by(15)
    world.ask(token="ffffffff")
    world.tick(FIRST)
    assert world.programs[FIRST].stopped == {"0a1b2c3d-1/stage"}
    assert world.programs[FIRST].started == ["0a1b2c3d-1/stage"]
    world.programs[FIRST].states["0a1b2c3d-1/stage"] = 143
    world.pass_by(20)
    assert world.programs[FIRST].started == ["0a1b2c3d-1/stage", "ffffffff-2/stage"]


def test_a_node_reports_activity_only_while_it_works(world):
    world.tick(FIRST)
    assert f"nodes/{FIRST}.busy" in world.channel.list("nodes/")
    world.settle()
    for ending in ("busy", "run", "beat"):
        world.channel.remove(f"nodes/{FIRST}.{ending}")
    world.now += 1000
    world.tick(FIRST)
    assert not list(world.channel.list(f"nodes/{FIRST}"))


def test_a_stuck_node_sends_heartbeats_for_two_minutes(world, monkeypatch):
    world.train()
    stuck, beat = world.agents[SECOND], names.heartbeat_key(SECOND)
    found = []

    def wait(self):  # as with a mount after its server is lost
        began = world.now
        while world.now - began < 300:
            world.now += 5
            stuck.heartbeat()
            found.append((world.now - began, world.channel.list(beat)[beat]))

    with monkeypatch.context() as patched:
        patched.setattr(Machine, "gpu_use", wait)
        world.now += 30
        stuck.tick()
    changes = [when for (when, tag), (_, before) in itertools.pairwise(found[::-1]) if tag != before]
    assert 100 < max(changes) <= 120
    assert world.latest.number == 1  # it counts no node as gone that it had no chance to read


def test_a_node_that_could_not_read_heartbeats_counts_no_node_as_gone(world, monkeypatch):
    world.train()

    def refused(*_):
        raise OSError("the bucket does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(world.channel, "list", refused)
        patched.setattr(world.channel, "write", refused)
        world.pass_by(120)
    world.tick(FIRST)  # it has not read the heartbeats again yet
    world.tick(FIRST)
    world.pass_by(60)
    assert world.latest.number == 1
