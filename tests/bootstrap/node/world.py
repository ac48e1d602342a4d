"""Simulated nodes: a data bucket in memory, programs that the test controls, and a clock."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from bootstrap.node.agent import Agent
from bootstrap.node.documents import RequestDocument, RunRequest
from bootstrap.node.machine import Machine, Node
from bootstrap.node.node_documents import Attempt, Member, NodeStatus, RunEnd
from bootstrap.node.processes import State
from bootstrap.node.store import Store, StoredDocument, StoredFile
from common import names
from corpus.stream.stream_settings import StreamSettings


class Programs:
    """Programs of a node, ended by the test."""

    def __init__(self) -> None:
        self.states: dict[str, State] = {}
        self.started: list[str] = []
        self.stopped: set[str] = set()
        self.environment: Mapping[str, str] = {}
        """Environment of the program that started last."""
        self.arguments: Sequence[str] = ()
        """Arguments of the program that started last."""

    def start(self, name: str, program: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self.arguments, self.environment = program, environment
        assert self.states.get(name) is None, f"{name} is started twice"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
        self.states[name] = "running"
        self.started.append(name)

    def state(self, name: str) -> State:
        return self.states.get(name)

    def stop(self, name: str, *, kill: bool = False) -> bool:
        if self.states.get(name) != "running":
            return False
        self.stopped.add(name)
        if kill:
            self.states[name] = "lost"
        return True

    def names(self) -> list[str]:
        return sorted(self.states)

    def forget(self, name: str) -> None:
        assert self.states[name] != "running"
        del self.states[name]

    def running(self) -> list[str]:
        return [name for name, state in self.states.items() if state == "running"]


class AtOnce(Executor):
    """Executor that runs each task before `submit` returns."""

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> "Future[Any]":
        done: Future[Any] = Future()
        try:
            done.set_result(work(*arguments, **named))
        except Exception as error:
            done.set_exception(error)
        return done


RUN = "demo.20260102T030405-0a1b"
KEY = names.request_key("demo")
DATASET = f"s3://data/datasets/{'0a' * 16}/dataset.h5"
STREAM = StreamSettings(sources=("s3://texts/",), readers=2, follow=True)


def request(*, trainers: int = 2, readers: int = 0, **more: object) -> RunRequest:
    options = {"model": ("skipgram",)} if readers else {}
    source = {"stream": STREAM} if readers else {"dataset": DATASET}
    made = {"run": RUN, "token": "0a1b2c3d", "share": "efs", "ready": True, "options": options, **source, **more}
    return RunRequest(trainers=trainers, readers=readers, **made)


class Memory(Store):
    """Data bucket in memory. The tag of an object is its content."""

    name = "s3://data"

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    def read(self, key: str, known: StoredDocument | None = None) -> StoredDocument | None:
        text = self._objects[key].decode() if key in self._objects else None
        return known if known and known.tag == text else text and StoredDocument(text, text)

    def read_from(self, key: str, offset: int, most: int) -> bytes:
        return self._objects.get(key, b"")[offset : offset + most]

    def write(self, key: str, text: str) -> None:
        self._objects[key] = text.encode()

    def write_if(self, key: str, text: str, known: StoredDocument | None) -> bool:
        if self.read(key) != known:
            return False
        self.write(key, text)
        return True

    def list(self, prefix: str) -> Mapping[str, StoredFile]:
        here = sorted(key for key in self._objects if key.startswith(prefix))
        return {key: StoredFile(len(self._objects[key]), 0.0, self._objects[key].decode()) for key in here}

    def size(self, key: str) -> int | None:
        return len(self._objects[key]) if key in self._objects else None

    def get(self, key: str, path: Path, **_: object) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self._objects[key])

    def put(self, path: Path, key: str, *_: object) -> None:
        self._objects[key] = path.read_bytes()

    def remove(self, key: str) -> None:
        self._objects.pop(key, None)


class CutChannel:
    """Bucket as one node reaches it, unless the node is cut off."""

    def __init__(self, world: "World", instance: str) -> None:
        self._world, self._instance = world, instance

    def __getattr__(self, name: str) -> Any:
        if self._instance in self._world.cut:
            raise ConnectionError("no route to the bucket")
        return getattr(self._world.channel, name)


class World:
    """Nodes of a run with their programs and agents, and the bucket."""

    def __init__(self, root: Path, run_request: RunRequest) -> None:
        self.root, self.request, self.now = root, run_request, 0.0
        self.channel = Memory()
        self.logged: list[str] = []
        self.programs: dict[str, Programs] = {}
        self.agents: dict[str, Agent] = {}
        self.gone: set[str] = set()
        self.cut: set[str] = set()
        """Nodes that cannot reach the bucket."""
        self.notices: dict[str, str] = {}
        """Notices of AWS, by node."""
        for number in range(run_request.trainers + run_request.readers):
            self.add(f"i-0000000{number}", gpus=int(number < run_request.trainers))
        self.ask()

    def add(self, instance: str, *, gpus: int = 1) -> None:
        """Add a node that has booted."""
        self.programs[instance] = Programs()
        self.agents[instance] = self._agent(instance, gpus)

    def _agent(self, instance: str, gpus: int) -> Agent:
        node = Node(
            member=Member(instance=instance, address=f"10.0.0.{int(instance[-1]) + 1}", gpus=gpus),
            machine=Machine(root=self.root / instance),
            processes=self.programs[instance],
            channel=CutChannel(self, instance),
            clock=lambda: self.now,
            time=lambda: self.now,
            notice=lambda: self.notices.get(instance, ""),
            pool=AtOnce(),
            say=lambda text: self.logged.append(text),
        )
        return Agent("demo", node)

    def ask(self, **changes: object) -> None:
        """Write the request with these changes."""
        self.request = replace(self.request, **changes)
        self.channel.write(KEY, RequestDocument(runs=(self.request,)).to_json())

    def tick(self, instance: str) -> None:
        self.now += 1
        if instance not in self.gone:
            self.agents[instance].tick()
            self.agents[instance].heartbeat()

    def pass_by(self, seconds: int) -> None:
        """Let all present nodes work for a number of seconds."""
        for _ in range(seconds // len(self.programs) + 1):
            for instance in self.programs:
                self.tick(instance)

    def crash(self, instance: str) -> None:
        """Kill an agent and start it again. Its programs continue."""
        self.agents[instance] = self._agent(instance, self.agents[instance]._node.member.gpus)

    def lose(self, instance: str) -> None:
        """End a node with all of its programs."""
        self.gone.add(instance)
        for name in self.programs[instance].running():
            self.programs[instance].states[name] = "lost"

    def attempts(self) -> list[Attempt]:
        keys = self.channel.list(names.attempts_prefix(RUN))
        return [Attempt.from_json(self.channel.read(key).text) for key in keys]

    @property
    def latest(self) -> Attempt | None:
        """Latest attempt."""
        keys = list(self.channel.list(names.attempts_prefix(RUN)))
        found = self.channel.read(keys[-1]) if keys else None
        return Attempt.from_json(found.text) if found else None

    def end(self) -> RunEnd | None:
        found = self.channel.read(self.request.end_key)
        return RunEnd.from_json(found.text) if found else None

    def finish(self, instance: str, program: str, status: int = 0) -> None:
        """End a program of the latest attempt if it runs."""
        name = f"{self.latest.name if self.latest else ''}/{program}"
        if self.programs[instance].states.get(name) == "running":
            self.programs[instance].states[name] = status

    def train(self) -> None:
        """Advance until all ranks have started."""
        for _ in range(20):
            for instance in self.programs:
                self.tick(instance)
                self.finish(instance, "stage")
        here = [instance for instance in self.programs if instance not in self.gone]
        running = [any(name.endswith("train") for name in self.programs[each].running()) for each in here]
        assert running == [self.agents[each]._node.member.gpus > 0 for each in here]

    def status(self, instance: str) -> NodeStatus | None:
        found = self.channel.read(names.status_key(instance))
        return NodeStatus.from_json(found.text) if found else None

    def settle(self) -> None:
        """Let every program end as it should, until nothing more happens."""
        for _ in range(100):
            for instance, programs in self.programs.items():
                self.tick(instance)
                for name in programs.running():
                    kind = name.partition("/")[2]
                    if not kind.startswith("reader") or name in programs.stopped:  # a stream without an end
                        programs.states[name] = 0 if name not in programs.stopped else 143
                    if kind == "train" and name not in programs.stopped:
                        self.channel.write(f"{names.RUNS}{RUN}/summary.json", '{"stopped": false}')
            if self.end() is not None and not any(each.running() for each in self.programs.values()):
                return

    def phases(self) -> list[str]:
        return [found.phase if (found := self.status(instance)) else "" for instance in self.programs]

    def started(self, program: str) -> list[bool]:
        return [any(name.endswith(program) for name in each.started) for each in self.programs.values()]


FIRST, SECOND = "i-00000000", "i-00000001"
