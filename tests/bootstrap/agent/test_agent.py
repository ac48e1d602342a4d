"""Agents of several nodes on one folder: whatever happens in whatever order, a run begins together and ends whole."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootstrap.agent import documents
from bootstrap.agent.agent import Agent
from bootstrap.agent.documents import Member, NodeStatus, RunRequest
from bootstrap.agent.machine import Machine
from bootstrap.agent.node_run import Node
from corpus.stream.stream_settings import StreamSettings
from tests.bootstrap.agent.world import AtOnce, Folder, Programs
from trainer.output.run_files import RECORD

RUN = "demo.20260102T030405-0a1b"
KEY = documents.request_key("demo")
DATASET = f"s3://data/datasets/{'0a' * 16}/dataset.h5"
STREAM = StreamSettings(sources=("s3://texts/",), readers=2, follow=True)


def request(*, trainers: int = 2, readers: int = 0, **more: object) -> RunRequest:
    members = [
        Member(instance=f"i-0000000{number}", address=f"10.0.0.{number + 1}", gpus=int(number < trainers))
        for number in range(trainers + readers)
    ]
    options = {"model": ("skipgram",)} if readers else {}
    learnt = {"stream": STREAM} if readers else {"dataset": DATASET}
    made = {"run": RUN, "token": "0a1b2c3d", "share": "efs", "options": options, "port": 20_000, **learnt, **more}
    return RunRequest(members=tuple(members), **made)  # type: ignore[arg-type]


class World:
    """The nodes of a run, each with its programs and its agent, and the bucket."""

    def __init__(self, root: Path, wanted: RunRequest) -> None:
        self.root, self.wanted, self.now = root, wanted, 0.0
        self.channel = Folder(root / "bucket")
        self.programs = {each.instance: Programs() for each in wanted.members}
        self.agents = {instance: self._agent(instance) for instance in self.programs}
        self.said: list[str] = []
        self.ask()

    def _agent(self, instance: str) -> Agent:
        node = Node(
            instance=instance,
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
        self.channel.write(KEY, self.wanted.to_json())

    def tick(self, instance: str) -> None:
        self.now += 1
        self.agents[instance].tick()

    def crash(self, instance: str) -> None:
        """End an agent, and start it again; its programs go on."""
        self.agents[instance] = self._agent(instance)

    def finish(self, instance: str, program: str, status: int = 0) -> None:
        """End a program of this launch, if it runs."""
        name = f"{self.wanted.token}/{program}"
        if self.programs[instance].states.get(name) == "running":
            self.programs[instance].states[name] = status

    def train(self) -> None:
        """Until all ranks have begun."""
        for _ in range(9):
            for instance in self.programs:
                self.tick(instance)
                self.finish(instance, "stage")
        assert self.started("train") == [each.gpus > 0 for each in self.wanted.members]

    def status(self, instance: str) -> NodeStatus | None:
        found = self.channel.read(documents.status_key(instance))
        return NodeStatus.from_json(found.text) if found else None

    def settle(self) -> None:
        """Let every program end as it should, until nothing more happens."""
        for _ in range(40):
            for instance, programs in self.programs.items():
                self.tick(instance)
                for name in programs.running():
                    kind = name.partition("/")[2]
                    if not kind.startswith("reader") or name in programs.stopped:  # text without an end
                        programs.states[name] = 0 if name not in programs.stopped else 143
            if set(self.phases()) <= {"done", "failed"}:
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
    for _ in range(3):
        world.tick(FIRST)
        world.tick(SECOND)
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
        for _ in range(31):
            world.tick(FIRST)
        status = world.status(FIRST)
        assert status is not None
        return status.step, status.attempt

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
    for instance in world.programs:
        world.tick(instance)
    assert world.started("stage") == [True, True]


def test_a_node_that_cannot_bring_its_data_ends_the_run_with_its_sentence(world: World) -> None:
    world.tick(FIRST)
    (world.root / FIRST / "var/lib/shoal/programs" / world.wanted.token / "stage.log").write_text("the disk is full\n")
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
    assert world.programs[FIRST].stopped == {f"{world.wanted.token}/train"}
    world.settle()
    assert world.phases() == ["done", "failed"]


def test_readers_go_on_until_all_ranks_have_ended_and_the_stream_is_forgotten_after_them(tmp_path: Path) -> None:
    world = World(tmp_path, request(readers=1))
    world.train()
    reader = "i-00000002"
    world.tick(reader)
    assert world.programs[reader].running() == [f"{world.wanted.token}/reader-{number}" for number in (0, 1)]
    world.finish(SECOND, "train")
    for _ in range(9):
        world.tick(SECOND)
        world.tick(reader)
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
    world.channel.write(KEY, world.wanted.to_json().replace('"version": 1', '"version": 2'))
    world.tick(FIRST)
    found = world.status(FIRST)
    assert found is not None
    assert (found.phase, "of version 2, and this is Shoal's 1; deploy again" in found.error) == ("failed", True)
    assert world.started("stage") == [False, False]


def test_programs_of_another_launch_end_before_the_next_begins(world: World) -> None:
    world.tick(FIRST)
    world.ask(token="ffffffff")
    world.tick(FIRST)
    assert world.programs[FIRST].stopped == {"0a1b2c3d/stage"}
    assert world.programs[FIRST].started == ["0a1b2c3d/stage"]
    world.programs[FIRST].states["0a1b2c3d/stage"] = 143
    world.tick(FIRST)
    assert world.programs[FIRST].started == ["0a1b2c3d/stage", "ffffffff/stage"]


def test_a_node_says_that_it_works_only_while_it_does(world: World) -> None:
    world.tick(FIRST)
    assert f"nodes/{FIRST}.busy" in world.channel.list("nodes/")
    world.settle()
    world.channel.remove(f"nodes/{FIRST}.busy")
    world.channel.remove(f"nodes/{FIRST}.run")
    world.now += 1000
    world.tick(FIRST)
    assert not list(world.channel.list(f"nodes/{FIRST}"))


EVENTS = st.tuples(
    st.sampled_from(["tick", "tick", "tick", "crash", "stage", "train", "reader", "fail", "stop"]), st.integers(0, 2)
)


@given(st.lists(EVENTS, max_size=60), st.sampled_from(["efs", None]), st.integers(0, 1))
def test_in_every_order_of_requests_stops_crashes_and_ends_a_run_begins_together_and_ends(
    events: list[tuple[str, int]], share: str | None, readers: int
) -> None:
    share = "efs" if readers else share
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), request(readers=readers, share=share))
        instances, failed, stopped = list(world.programs), False, False
        for event, number in events:
            instance = instances[number % len(instances)]
            running = world.programs[instance].running()
            if event == "tick":
                before = world.started("train")
                world.tick(instance)
                if world.started("train") != before:
                    ended = [each.states.get(f"{world.wanted.token}/stage") for each in world.programs.values()]
                    assert ended == [0] * len(ended)
            elif event == "crash":
                world.crash(instance)
            elif event == "stop":
                world.ask(stop=True)
                stopped = True
            elif event == "fail" and running:
                world.programs[instance].states[running[0]] = 1
                failed |= "reader" not in running[0]
            elif event in ("stage", "train"):
                world.finish(instance, event)
        world.settle()
        phases = world.phases()
        assert set(phases) <= {"done", "failed"}, phases
        assert not any(each.running() for each in world.programs.values())
        if not failed:
            assert set(phases) == {"done"}, phases
        if not failed and not stopped:
            assert world.started("train")[:2] == [True, True]
