"""What lost nodes cost a long training: its goodput, beside that of a run which is begun anew on a new cluster.

    python -m benchmarks goodput [--nodes 4 8 16] [--hours 2] [--every 10]

Goodput is the share of the paid node-seconds in which rows were computed that count. A node is ended every ten minutes,
as when its power fails, or as when it is terminated, which shuts it down. Another one comes in its place, which is paid
from its start and boots for a while. The agents
are the real ones, with a clock of their own; what ranks do is played: they start for a while, train together, write
checkpoints, wait where they lost others, and stop when they are asked to. Beside it is what is computed for a launcher
which looks every 15 seconds, ends the cluster where a node is lost, and has the run go on from its checkpoint on a new
one, as SkyPilot's managed jobs do (JOB_STATUS_CHECK_GAP_SECONDS in sky/jobs/utils.py).
"""

import argparse
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.played import RUN, PlayedBucket, agent, request
from benchmarks.record import Log
from bootstrap.agent import documents
from bootstrap.agent.agent import Agent
from bootstrap.agent.machine import Machine
from bootstrap.agent.node_documents import Attempt
from bootstrap.agent.processes import State
from trainer.distributed import failures
from trainer.options.run_options import seconds_between_checkpoints
from trainer.output.run_files import RECORD

_TICK = 0.2
_EXIT_SECONDS = 0.5
"""Of a program that is asked to stop, or whose ranks are lost."""
_SKYPILOT_LOOK_SECONDS = 15.0


@dataclass(frozen=True)
class Times:
    """Seconds of what is played."""

    start: float
    """From the start of a node's ranks to their first step."""
    stage: float
    """Looking for data that is there already."""
    writing: float
    """A checkpoint."""
    boot: float
    """From the start of a node to its agent."""

    @property
    def pause(self) -> float:
        """Between two checkpoints, as the trainer chooses it."""
        return seconds_between_checkpoints(0.0, self.writing)


@dataclass
class _Training:
    """What the ranks of all nodes do together. Progress is counted in node-seconds of computing."""

    times: Times
    bucket: PlayedBucket
    saved: float = 0.0
    """The progress of the newest checkpoint."""
    progress: float = 0.0
    attempt: Attempt | None = None
    nodes: dict[str, "_Programs"] = field(default_factory=dict)
    """Those that are there, by instance."""
    written: float = 0.0
    """When the newest checkpoint was written, or the ranks began from it."""
    busy_until: float = 0.0
    repeated: float = 0.0

    def tick(self, now: float) -> None:
        """Let the ranks work until `now`."""
        if (attempt := self._running()) is None:
            return
        if self.attempt is None or attempt.number != self.attempt.number:
            self._lose()
            self.attempt, self.written = attempt, now
        members = [self.nodes[each] for each in attempt.instances if each in self.nodes]
        trains = [each for each in members if each.trains(attempt, now)]
        if len(trains) < len(attempt.instances):
            for each in members:
                each.tell_meeting(attempt, lost=len(members) < len(attempt.instances) and each in trains)
            if len(members) < len(attempt.instances):
                self._lose()
            return
        if now < self.busy_until:
            return
        if any(each.asked for each in members):
            self._save(now)
            for each in members:
                each.end(attempt, now + self.times.writing)
            return
        self.progress += _TICK * len(members)
        if now - self.written >= self.times.pause:
            self._save(now)

    def _running(self) -> Attempt | None:
        """The newest attempt of which programs train."""
        names = [name for each in self.nodes.values() for name in each.running()]
        numbers = [int(name.removesuffix("/train").rpartition("-")[2]) for name in names]
        found = self.bucket.read(documents.attempt_key(RUN, max(numbers))) if numbers else None
        return Attempt.from_json(found.text) if found else None

    def _save(self, now: float) -> None:
        self.saved, self.written = self.progress, now + self.times.writing
        self.busy_until = self.written
        self.bucket.write(f"{documents.RUNS}{RUN}/checkpoints/step-{round(self.saved):09}.pt", "")

    def _lose(self) -> None:
        self.repeated += self.progress - self.saved
        self.progress = self.saved


@dataclass
class _Programs:
    """The programs of a node."""

    times: Times
    clock: Callable[[], float]
    left: Sequence[Path]
    """The files that staging leaves."""
    began: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    """When a program ends that is to."""
    asked: bool = False
    meeting: Path | None = None
    shuts_down: bool = False
    """Whether the node does, which asks all its programs to stop."""

    def start(self, name: str, program: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        del program, log
        self.began[name], self.asked = self.clock(), False
        if self.meeting is not None:
            self.meeting.unlink(missing_ok=True)
        if name.endswith("/stage"):
            self.ended[name] = self.clock() + self.times.stage
            for path in self.left:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
        else:
            self.meeting = Path(environment[failures.MEETING])

    def state(self, name: str) -> State:
        if name not in self.began:
            return None
        return 0 if self.clock() >= self.ended.get(name, float("inf")) else "running"

    def stop(self, name: str, *, kill: bool = False) -> bool:
        if self.state(name) != "running":
            return False
        if kill or self._is_meeting:
            self.ended.setdefault(name, self.clock() + _EXIT_SECONDS)
        self.asked = True
        return True

    def running(self) -> list[str]:
        """The ranks that run."""
        return [name for name in self.began if name.endswith("/train") and self.state(name) == "running"]

    def names(self) -> list[str]:
        return list(self.began)

    def forget(self, name: str) -> None:
        del self.began[name]

    def trains(self, attempt: Attempt, now: float) -> bool:
        """Whether its ranks of this attempt have come to their steps, and have lost nobody."""
        name = f"{attempt.name}/train"
        here = self.state(name) == "running" and now - self.began[name] >= self.times.start
        return here and not self._is_meeting

    def end(self, attempt: Attempt, when: float) -> None:
        """Have its ranks end as asked."""
        self.ended[f"{attempt.name}/train"] = when

    def tell_meeting(self, attempt: Attempt, *, lost: bool) -> None:
        """Have its ranks wait for those of others, which they have lost."""
        if lost and self.meeting is not None and self.state(f"{attempt.name}/train") == "running":
            self.meeting.parent.mkdir(parents=True, exist_ok=True)
            self.meeting.touch()

    @property
    def _is_meeting(self) -> bool:
        return self.meeting is not None and self.meeting.exists()


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks goodput", description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[4, 8, 16], help="how many train (default: 4 8 16)")
    for name, value, what in (
        ("hours", 2.0, "of training that are played"),
        ("every", 10.0, "minutes from the end of one node to that of the next"),
        ("start", 6.0, "seconds from the start of a node's ranks to their first step"),
        ("writing", 0.1, "seconds that a checkpoint takes"),
        ("boot", 120.0, "seconds from the start of a node to its agent"),
    ):
        parser.add_argument(f"--{name}", type=float, default=value, help=f"{what} (default: %(default)s)")
    options = parser.parse_args(arguments)
    times = Times(start=options.start, stage=0.5, writing=options.writing, boot=options.boot)
    log, found = Log("goodput"), {}
    restarted = _restarted(60 * options.every, times)
    for nodes, how in product(options.nodes, ("lost", "shut down")):
        with TemporaryDirectory() as folder:
            cluster = _Cluster(Path(folder), nodes, times, shut_down=how == "shut down")
            found[f"{nodes} {how}"] = _played(cluster, 3600 * options.hours, 60 * options.every)
    log.table(
        ["nodes", "goodput, %", "without boots, %", "booting, %", "repeated, %", "attempts"],
        [
            [
                name,
                *(f"{100 * each[part]:.1f}" for part in ("goodput", "of booted", "booting", "repeated")),
                str(each["attempts"]),
            ]
            for name, each in found.items()
        ],
    )
    log.say(f"the cluster replaced at each loss: {100 * restarted:.1f}%")
    log.keep({"options": vars(options), "found": found, "restarted": restarted})


class _Cluster:
    """Nodes that end and are replaced, and what they cost, in node-seconds."""

    def __init__(self, root: Path, nodes: int, times: Times, *, shut_down: bool) -> None:
        """`shut_down`: whether nodes are, where they end."""
        self.bucket, self.now, self._shut_down = PlayedBucket(), 0.0, shut_down
        self.training = _Training(times, self.bucket)
        self.paid = self.booting = 0.0
        self._root, self._times, self._chance = root, times, random.Random(3)  # noqa: S311
        self._agents, self._due, self._boots = dict[str, Agent](), dict[str, float](), list[float]()
        self._added, self._wanted = 0, request(self.bucket, nodes)
        for _ in range(nodes):
            self._add()

    def _clock(self) -> float:
        return self.now

    def _add(self) -> None:
        """A node that has booted."""
        machine, name = Machine(root=self._root / str(self._added)), f"i-{self._added:08x}"
        left = (machine.data(self._wanted), machine.run(self._wanted) / RECORD)
        programs = _Programs(self._times, self._clock, left)
        self._agents[name] = agent(
            self._added,
            programs,
            self.bucket,
            self._clock,
            self._root,
            lambda: "off" if programs.shuts_down else "",
        )
        self._due[name], self.training.nodes[name] = self.now, programs
        self._added += 1

    def end_one(self) -> None:
        """End a node, and start another one in its place."""
        name = self._chance.choice(sorted(self._agents))
        if self._shut_down:
            self.training.nodes[name].shuts_down = self.training.nodes[name].asked = True
        else:
            self._lose(name)

    def _lose(self, name: str) -> None:
        for held in (self._agents, self._due, self.training.nodes):
            del held[name]
        self._boots.append(self.now + self._times.boot)

    def tick(self) -> None:
        """Let a moment pass."""
        self.training.tick(self.now)
        for name in [name for name, each in self.training.nodes.items() if each.shuts_down]:
            if not self._agents[name].takes_part:
                self._lose(name)
        while self._boots and self.now >= self._boots[0]:
            del self._boots[0]
            self._add()
        self.paid += _TICK * (len(self._agents) + len(self._boots))
        self.booting += _TICK * len(self._boots)
        for name, each in self._agents.items():
            if self.now >= self._due[name]:
                each.tick()
                each.beat()
                self._due[name] = self.now + each.pause
        self.now = round(self.now + _TICK, 3)


def _played(cluster: _Cluster, seconds: float, every: float) -> dict[str, float]:
    training = cluster.training
    while not training.progress:
        cluster.tick()
    cluster.paid = 0.0
    ends, lost = cluster.now + seconds, cluster.now + every
    while cluster.now < ends:
        if cluster.now >= lost:
            cluster.end_one()
            lost += every
        cluster.tick()
    return {
        "goodput": training.progress / cluster.paid,
        "of booted": training.progress / (cluster.paid - cluster.booting),
        "booting": cluster.booting / cluster.paid,
        "repeated": training.repeated / cluster.paid,
        "attempts": training.attempt.number if training.attempt else 0,
    }


def _restarted(every: float, times: Times) -> float:
    """The goodput where each loss ends the cluster, and the run goes on from its checkpoint on a new one: nodes cost
    until somebody looks, half an interval later, and those of the new cluster while they boot and start."""
    around = _SKYPILOT_LOOK_SECONDS / 2 + times.boot + times.start + times.pause / 2
    useful = every * (1 - times.writing / times.pause)
    return max(0.0, useful - around) / every
