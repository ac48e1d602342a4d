"""Agents of several nodes on one folder: whatever happens in whatever order, a run begins together and ends whole."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootstrap.agent import documents
from bootstrap.agent.agent import Agent
from bootstrap.agent.documents import Attempt, NodeStatus, RequestQueue, RunEnd, RunRequest
from bootstrap.agent.machine import Machine
from bootstrap.agent.node_run import Node
from bootstrap.agent.processes import LOST
from corpus.stream.stream_settings import StreamSettings
from tests.bootstrap.agent.world import AtOnce, Folder, Programs
from trainer.output.run_files import RECORD

RUN = "demo.20260102T030405-0a1b"
KEY = documents.request_key("demo")
DATASET = f"s3://data/datasets/{'0a' * 16}/dataset.h5"
STREAM = StreamSettings(sources=("s3://texts/",), readers=2, follow=True)


def request(*, trainers: int = 2, readers: int = 0, **more: object) -> RunRequest:
    options = {"model": ("skipgram",)} if readers else {}
    learnt = {"stream": STREAM} if readers else {"dataset": DATASET}
    made = {"run": RUN, "token": "0a1b2c3d", "share": "efs", "options": options, **learnt, **more}
    return RunRequest(trainers=trainers, readers=readers, **made)  # type: ignore[arg-type]


class World:
    """The nodes of a run, each with its programs and its agent, and the bucket."""

    def __init__(self, root: Path, wanted: RunRequest) -> None:
        self.root, self.wanted, self.now = root, wanted, 0.0
        self.channel = Folder(root / "bucket")
        self.said: list[str] = []
        self.programs: dict[str, Programs] = {}
        self.agents: dict[str, Agent] = {}
        self.gone: set[str] = set()
        for number in range(wanted.trainers + wanted.readers):
            self.add(f"i-0000000{number}", gpus=int(number < wanted.trainers))
        self.ask()

    def add(self, instance: str, *, gpus: int = 1) -> None:
        """A node that has booted."""
        self.programs[instance] = Programs()
        self.agents[instance] = self._agent(instance, gpus)

    def _agent(self, instance: str, gpus: int) -> Agent:
        node = Node(
            instance=instance,
            address=f"10.0.0.{int(instance[-1]) + 1}",
            gpus=gpus,
            bucket="data",
            machine=Machine(root=self.root / instance),
            processes=self.programs[instance],
            channel=self.channel,
            clock=lambda: self.now,
            pool=AtOnce(),
            say=lambda text: self.said.append(text),
        )
        return Agent("demo", node)

    def ask(self, **changes: object) -> None:
        """Write the request, with these changes."""
        self.wanted = replace(self.wanted, **changes)  # type: ignore[arg-type]
        self.channel.write(KEY, RequestQueue(runs=(self.wanted,)).to_json())

    def tick(self, instance: str) -> None:
        self.now += 1
        if instance not in self.gone:
            self.agents[instance].tick()

    def pass_by(self, seconds: int) -> None:
        """Let all nodes that are there work for so many seconds."""
        for _ in range(seconds // len(self.programs) + 1):
            for instance in self.programs:
                self.tick(instance)

    def crash(self, instance: str) -> None:
        """End an agent, and start it again; its programs go on."""
        self.agents[instance] = self._agent(instance, self.agents[instance]._node.gpus)

    def lose(self, instance: str) -> None:
        """End a node, with all of its programs."""
        self.gone.add(instance)
        for name in self.programs[instance].running():
            self.programs[instance].states[name] = LOST

    @property
    def latest(self) -> Attempt | None:
        """The latest attempt."""
        keys = list(self.channel.list(documents.attempts_prefix(RUN)))
        found = self.channel.read(keys[-1]) if keys else None
        return Attempt.from_json(found.text) if found else None

    def end(self) -> RunEnd | None:
        found = self.channel.read(self.wanted.end_key)
        return RunEnd.from_json(found.text) if found else None

    def finish(self, instance: str, program: str, status: int = 0) -> None:
        """End a program of the latest attempt, if it runs."""
        name = f"{self.latest.name if self.latest else ''}/{program}"
        if self.programs[instance].states.get(name) == "running":
            self.programs[instance].states[name] = status

    def train(self) -> None:
        """Until all ranks have begun."""
        for _ in range(20):
            for instance in self.programs:
                self.tick(instance)
                self.finish(instance, "stage")
        here = [instance for instance in self.programs if instance not in self.gone]
        running = [any(name.endswith("train") for name in self.programs[each].running()) for each in here]
        assert running == [self.agents[each]._node.gpus > 0 for each in here]

    def status(self, instance: str) -> NodeStatus | None:
        found = self.channel.read(documents.status_key(instance))
        return NodeStatus.from_json(found.text) if found else None

    def settle(self) -> None:
        """Let every program end as it should, until nothing more happens."""
        for _ in range(100):
            for instance, programs in self.programs.items():
                self.tick(instance)
                for name in programs.running():
                    kind = name.partition("/")[2]
                    if not kind.startswith("reader") or name in programs.stopped:  # text without an end
                        programs.states[name] = 0 if name not in programs.stopped else 143
            if self.end() is not None and not any(each.running() for each in self.programs.values()):
                return

    def phases(self) -> list[str]:
        return [found.phase if (found := self.status(instance)) else "" for instance in self.programs]

    def started(self, program: str) -> list[bool]:
        return [any(name.endswith(program) for name in each.started) for each in self.programs.values()]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, request())


FIRST, SECOND = "i-00000000", "i-00000001"


def test_ranks_begin_when_every_node_has_its_data(world: World) -> None:
    world.pass_by(15)
    assert (world.started("stage"), world.phases()) == (
        [True, False],
        ["stage", "stage"],
    )  # the first one fills a share
    world.finish(FIRST, "stage")
    for _ in range(3):
        world.tick(FIRST)
        world.tick(SECOND)
    assert (world.started("stage"), world.started("train")) == ([True, True], [False, False])
    world.settle()
    assert (world.started("train"), world.phases()) == ([True, True], ["done", "done"])


def test_a_node_tells_the_step_and_the_attempt_that_the_record_has_also_after_its_agent_died(world: World) -> None:
    world.train()
    record = Machine(root=world.root / FIRST).run(world.wanted) / RECORD

    def told(*lines: str) -> tuple[int | None, int | None]:
        with record.open("a") as file:
            file.write("".join(lines))
        world.pass_by(70)
        status = world.status(FIRST)
        assert status is not None
        return status.step, status.starts

    start, step = '{"kind": "start", "time": 1}\n', '{{"kind": "step", "time": 1, "step": {}, "epoch": 1, "loss": 0.5, '
    step += '"split": [32], "compute_seconds": [0.1]}}\n'
    assert told() == (None, None)
    assert told(start, step.format(1), step.format(7), step.format(8)[:-5]) == (7, 1)
    assert told("\n", step.format('"x"'), start) == (7, 2)
    world.crash(FIRST)
    assert told(step.format(9)) == (9, 2)
    record.write_text(start)
    assert told() == (None, 1)


def test_nodes_that_share_nothing_bring_their_data_at_once(tmp_path: Path) -> None:
    world = World(tmp_path, request(share=None))
    world.pass_by(15)
    assert world.started("stage") == [True, True]


def test_a_node_that_cannot_bring_its_data_ends_the_run_with_its_sentence(world: World) -> None:
    world.pass_by(15)
    (world.root / FIRST / "var/lib/shoal/programs" / f"{world.wanted.token}-1" / "stage.log").write_text(
        "the disk is full\n"
    )
    world.finish(FIRST, "stage", 1)
    world.settle()
    assert world.phases() == ["failed", "done"]
    assert world.status(FIRST).error == "the disk is full"  # type: ignore[union-attr]
    assert world.started("train") == [False, False]


def test_a_node_whose_ranks_fail_has_all_others_stop(world: World) -> None:
    world.train()
    world.finish(SECOND, "train", 1)
    world.tick(SECOND)
    for _ in range(7):
        world.tick(FIRST)
    assert world.programs[FIRST].stopped == {f"{world.wanted.token}-1/train"}
    world.settle()
    assert world.phases() == ["done", "failed"]


def test_readers_go_on_until_all_ranks_have_ended_and_the_stream_is_forgotten_after_them(tmp_path: Path) -> None:
    world = World(tmp_path, request(readers=1))
    world.train()
    reader = "i-00000002"
    world.tick(reader)
    assert world.programs[reader].running() == [f"{world.wanted.token}-1/reader-{number}" for number in (0, 1)]
    world.finish(SECOND, "train")
    world.pass_by(27)
    assert not world.programs[reader].stopped
    (tmp_path / FIRST / "mnt/share/runs" / RUN / "summary.json").write_text('{"stopped": false}')
    (stream := tmp_path / FIRST / "mnt/share/streams" / RUN).mkdir(parents=True)
    world.settle()
    assert world.phases() == ["done"] * 3
    assert not stream.exists()


def test_a_reader_that_dies_again_and_again_ends_the_run(tmp_path: Path) -> None:
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
    assert "reader 1 on the node i-00000001 died again and again" in world.status(reader).error  # type: ignore[union-attr]
    assert sum(name.endswith("reader-1") for name in world.programs[reader].started) == 4


def test_a_request_of_another_version_is_refused_in_a_status(world: World) -> None:
    world.channel.write(KEY, RequestQueue(runs=(world.wanted,)).to_json().replace('"version": 1', '"version": 2'))
    world.tick(FIRST)
    found = world.status(FIRST)
    assert found is not None
    assert (found.phase, "of version 2, and this is Shoal's 1; deploy again" in found.error) == ("failed", True)
    assert world.started("stage") == [False, False]


def test_programs_of_another_launch_end_before_the_next_begins(world: World) -> None:
    world.pass_by(15)
    world.ask(token="ffffffff")
    world.tick(FIRST)
    assert world.programs[FIRST].stopped == {"0a1b2c3d-1/stage"}
    assert world.programs[FIRST].started == ["0a1b2c3d-1/stage"]
    world.programs[FIRST].states["0a1b2c3d-1/stage"] = 143
    world.pass_by(20)
    assert world.programs[FIRST].started == ["0a1b2c3d-1/stage", "ffffffff-2/stage"]


def test_a_node_says_that_it_works_only_while_it_does(world: World) -> None:
    world.tick(FIRST)
    assert f"nodes/{FIRST}.busy" in world.channel.list("nodes/")
    world.settle()
    world.channel.remove(f"nodes/{FIRST}.busy")
    world.channel.remove(f"nodes/{FIRST}.run")
    world.channel.remove(f"nodes/{FIRST}.beat")
    world.now += 1000
    world.tick(FIRST)
    assert not list(world.channel.list(f"nodes/{FIRST}"))


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
