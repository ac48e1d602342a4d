"""Ranks, agents and nodes that are lost during a training on nodes of the embedded AWS: the run goes on."""

import json
from pathlib import Path

import boto3
import psutil
import pytest

from bootstrap.nodes.fleet import nodes
from bootstrap.progress import Bars
from tests.bootstrap.training.on_nodes import DATASET, boot, checkpoints
from tests.fleet import Fleet
from tests.processes import rank_processes
from tests.trained import train_on
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
    notes = [line["text"] for line in record if line["kind"] == "note"]  # a busy machine may add one on a slow rank
    (note,) = (each for each in notes if each.startswith(f"rank 1 on {node} was ended by signal 9 (SIGKILL)"))
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
