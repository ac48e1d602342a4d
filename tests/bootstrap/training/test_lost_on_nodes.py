"""Ranks, agents and nodes that are lost during a training on nodes of the embedded AWS: the run goes on."""

import json
import random
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import boto3
import psutil
import pytest

from bootstrap.nodes.fleet import nodes
from bootstrap.progress import Bars
from bootstrap.training.places.run_launch import Wishes
from embedded.aws import EmbeddedAws
from embedded.faults.kinds import SpotInterruption
from tests.bootstrap.training.on_nodes import DATASET, boot, checkpoints
from tests.fleet import Fleet
from tests.processes import rank_processes
from tests.trained import train_on
from tests.waiting import until
from trainer.config import TrainConfig
from trainer.options.run_options import Slowdown

pytestmark = pytest.mark.usefixtures("node_bucket")


class Murderer(Bars):
    """Kills the second rank, which is on the second node, as soon as a checkpoint may be there."""

    def __init__(self, nodes: Path) -> None:
        super().__init__()
        self._nodes = nodes
        self.killed: list[psutil.Process] = []

    def at(self, done: int) -> None:
        super().at(done)
        if not self.killed and done > 40 * 256:
            self.killed = rank_processes(1, self._nodes)
            for rank in self.killed:
                rank.kill()


@pytest.mark.slow
def test_a_rank_that_is_lost_on_one_node_is_started_again_with_all_others(aws, tmp_path: Path) -> None:
    two = Fleet(share="nfs").add("pair", "g5.xlarge", 2, boot=boot("nfs"))
    slow = {0: Slowdown(30.0), 1: Slowdown(30.0)}
    config = TrainConfig(
        data=Path("dataset"), output=tmp_path, epochs=12, slow=slow, balance="off", checkpoint_minutes=0.004
    )
    with Murderer(aws.folder) as bars:
        finished = train_on(two.deployment, config, DATASET, bars)
    assert len(bars.killed) == 1
    assert (finished["stopped"], finished["rows_seen"]) == (False, 12 * finished["rows"])
    record = [json.loads(line) for line in (tmp_path / "record.jsonl").open()]
    starts = [line["from_step"] for line in record if line["kind"] == "start"]
    assert len(starts) == 2
    node = finished["nodes"][1]["instance_id"]
    note = next(line["text"] for line in record if line["kind"] == "note")
    assert note.startswith(f"rank 1 on {node} was ended by signal 9 (SIGKILL)")
    assert note.endswith(f"; resuming from step {starts[1]}")


class Taker(Bars):
    """Takes the first node away, which serves the folder that all share, when a checkpoint is in the bucket."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__()
        self._fleet, self.taken, self.notes = fleet, "", list[str]()

    def at(self, done: int) -> None:
        super().at(done)
        if not self.taken and checkpoints():
            self.taken = nodes(self._fleet.deployment)[0].instance_id
            boto3.client("ec2").terminate_instances(InstanceIds=[self.taken])

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.mark.slow
def test_the_others_go_on_without_the_first_node_from_the_newest_checkpoint_in_the_bucket(aws, tmp_path: Path) -> None:
    two = Fleet(share="nfs").add("pair", "g5.xlarge", 2, boot=boot("nfs"))
    slow = {0: Slowdown(30.0), 1: Slowdown(30.0)}
    config = TrainConfig(
        data=Path("dataset"), output=tmp_path, epochs=12, slow=slow, balance="off", checkpoint_minutes=0.02
    )
    with Taker(two) as bars:
        finished = train_on(two.deployment, config, DATASET, bars)
    assert any(note.startswith(f"the node {bars.taken} is gone; attempt 2 continues on ") for note in bars.notes)
    assert (finished["stopped"], finished["rows_seen"]) == (False, 12 * finished["rows"])
    starts = [line for line in map(json.loads, (tmp_path / "record.jsonl").open()) if line["kind"] == "start"]
    assert len(starts) >= 2
    assert starts[1]["from_step"] > 0
    assert two.desired() == {"pair": 0}


class Reclaimer(Bars):
    """Gives the first node AWS's two minutes, and ends it once the others go on."""

    def __init__(self, aws: EmbeddedAws, fleet: Fleet) -> None:
        super().__init__()
        self._aws, self._fleet, self.reclaimed, self.note_of_it = aws, fleet, "", ""

    def at(self, done: int) -> None:
        super().at(done)
        if not self.reclaimed and done > 8 * 256:  # early: a quick machine is soon at the end
            self.reclaimed = nodes(self._fleet.deployment)[0].instance_id
            self._aws.faults.add(SpotInterruption(instance=self.reclaimed))

    def note(self, text: str) -> None:
        if text.startswith(f"the node {self.reclaimed} is being reclaimed by AWS; attempt 2 continues on "):
            self.note_of_it = text
            boto3.client("ec2").terminate_instances(InstanceIds=[self.reclaimed])


@pytest.mark.soak
def test_a_node_that_aws_reclaims_costs_no_step_of_the_run(aws, tmp_path: Path) -> None:
    two = Fleet(share="nfs").add("pair", "g5.xlarge", 2, boot=boot("nfs"))
    slow = {0: Slowdown(30.0), 1: Slowdown(30.0)}
    config = TrainConfig(data=Path("dataset"), output=tmp_path, epochs=16, slow=slow, balance="off")
    with Reclaimer(aws, two) as bars:
        finished = train_on(two.deployment, config, DATASET, bars)
    assert bars.note_of_it
    assert (finished["stopped"], finished["rows_seen"]) == (False, 16 * finished["rows"])
    record = [json.loads(line) for line in (tmp_path / "record.jsonl").open()]
    second = next(number for number, line in enumerate(record) if line["kind"] == "start" and line["from_step"])
    steps = [line["step"] for line in record[:second] if line["kind"] == "step"]
    assert record[second]["from_step"] >= max(steps)


class Throttle(Bars):
    """Lets the second rank compute a third of the time, until its node is replaced; then it stops the run."""

    def __init__(self, nodes: Path) -> None:
        super().__init__()
        self._nodes, self._over, self.notes = nodes, threading.Event(), list[str]()
        self._thread, self.interrupted = threading.Thread(target=self._throttle), False

    def __enter__(self) -> Self:
        self._thread.start()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        self._over.set()
        self._thread.join()
        super().__exit__(*error)

    def _throttle(self) -> None:
        ranks: list[psutil.Process] = []
        while not self._over.wait(0.05):
            try:
                ranks = [each for each in ranks if each.is_running()] or rank_processes(1, self._nodes)
                for rank in ranks:
                    rank.suspend()
                self._over.wait(0.1)
                for rank in ranks:
                    rank.resume()
            except psutil.NoSuchProcess:
                ranks = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def at(self, done: int) -> None:
        super().at(done)
        if not self.interrupted and any(
            " is slow, and replaced; attempt 2 continues on " in note for note in self.notes
        ):
            self.interrupted = True
            raise KeyboardInterrupt


@pytest.mark.soak
def test_a_node_that_is_much_slower_than_its_kind_is_named_and_replaced(aws, tmp_path: Path) -> None:
    two = Fleet(share="nfs").add("pair", "g5.xlarge", 2, boot=boot("nfs"))
    config = TrainConfig(data=Path("dataset"), output=tmp_path, epochs=1_000_000, threads=1, global_batch=1024)
    with Throttle(aws.folder) as bars:
        finished = train_on(two.deployment, config, DATASET, bars, wishes=Wishes(keep=True, replace_slow=True))
    assert finished["stopped"]
    slow = next(note for note in bars.notes if " of the speed of the others of its kind" in note)
    assert slow.startswith("rank 1 on i-")
    lost = slow.split()[3]
    until(lambda: len(nodes(two.deployment)) == 2)  # another one in its place
    assert lost not in {each.instance_id for each in nodes(two.deployment)}


class KilledAgents:
    """Kills the agent of one of the nodes below a folder, again and again at random moments."""

    def __init__(self, nodes: Path) -> None:
        self._nodes, self._random, self._over = nodes, random.Random(7), threading.Event()
        self._thread = threading.Thread(target=self._kill)
        self.killed = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _kill(self) -> None:
        while self.killed < 20 and not self._over.wait(self._random.uniform(0.1, 1.0)):
            agents = [
                each
                for each in psutil.process_iter(["cmdline", "environ"])
                if (each.info["environ"] or {}).get("NODE_ROOT", "").startswith(f"{self._nodes}/")
                and (each.info["cmdline"] or [])[-2:] == ["-m", "bootstrap.agent"]
            ]
            if agents:
                self._random.choice(agents).kill()
                self.killed += 1


@pytest.mark.soak
def test_agents_that_are_killed_at_random_moments_change_nothing(aws, tmp_path: Path) -> None:
    two = Fleet(share="nfs").add("pair", "g5.xlarge", 2, boot=boot("nfs"))
    config = TrainConfig(data=Path("dataset"), output=tmp_path / "one", epochs=12, balance="off", threads=1, seed=3)

    def trained(output: Path, **slowed: Any) -> tuple[bytes, list[float]]:
        with Bars() as bars:
            found = train_on(two.deployment, replace(config, output=output, **slowed), DATASET, bars)
        assert (found["stopped"], found["rows_seen"]) == (False, 12 * found["rows"])
        record = [json.loads(line) for line in (output / "record.jsonl").open()]
        assert sum(line["kind"] == "start" for line in record) == 1
        losses = [line["loss"] for line in record if line["kind"] == "epoch"]
        return (output / "model" / "model.safetensors").read_bytes(), losses

    undisturbed = trained(tmp_path / "one")
    with KilledAgents(aws.folder) as agents:
        disturbed = trained(tmp_path / "other", slow={0: Slowdown(40.0), 1: Slowdown(40.0)})
    assert agents.killed == 20
    assert disturbed == undisturbed
