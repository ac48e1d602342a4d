"""Tests of losing ranks and nodes during a training run on nodes of the embedded AWS: the run continues."""

import json
from pathlib import Path

import boto3
import pytest

from common.progress import ProgressReporter, reporting
from shoal.aws.fleet import nodes
from tests.fleet import Fleet, boot_agent
from tests.processes import rank_processes
from tests.shoal.backends.on_nodes import DATASET, checkpoints
from tests.trained import train_on
from trainer.config import configured

pytestmark = pytest.mark.usefixtures("node_bucket")


class Losing(ProgressReporter):
    """Reporter that calls `takes` as soon as a checkpoint may exist."""

    def __init__(self, takes):
        self._takes, self.lost, self.notes = takes, [], []

    def at(self, done):
        self.lost = self.lost or self._takes(done)

    def note(self, text):
        self.notes.append(text)


def trained(fleet, output, minutes, takes):
    """Train on two nodes with a loss; return what was lost, the summary and the record."""
    slow = {0: 30.0, 1: 30.0}
    more = {"epochs": 12, "slow": slow, "balance": "off", "checkpoint_minutes": minutes}
    losing = Losing(takes)
    with reporting(losing):
        finished = train_on(
            fleet.deployment, configured({"model": "lstm", "data": Path("dataset"), "output": output, **more}), DATASET
        )
    assert (finished["stopped"], finished["rows_seen"]) == (False, 12 * finished["rows"])
    return losing, finished, [json.loads(line) for line in (output / "record.jsonl").open()]


@pytest.fixture
def two(aws):
    return Fleet(share="nfs").add("pair", "g5.xlarge", 2, boot=boot_agent())


@pytest.mark.soak
def test_after_the_loss_of_a_rank_all_ranks_restart(two, aws, tmp_path):
    def kill(done):
        found = rank_processes(1, aws.folder) if done > 40 * 256 else []
        for rank in found:  # it is on the second node
            rank.kill()
        return found

    losing, finished, record = trained(two, tmp_path, 0.004, kill)
    assert len(losing.lost) == 1
    starts = [line["from_step"] for line in record if line["kind"] == "start"]
    assert len(starts) == 2
    node = finished["nodes"][1]["instance_id"]
    notes = [line["text"] for line in record if line["kind"] == "note"]
    (note,) = (each for each in notes if each.startswith(f"rank 1 on {node} was killed by signal 9 (SIGKILL)"))
    assert note.endswith(f"; resuming from step {starts[1]}")


@pytest.mark.slow
def test_the_other_nodes_continue_from_the_newest_checkpoint_without_the_first_node(two, tmp_path):
    def end(_):
        if not checkpoints():
            return []
        first = nodes(two.deployment)[0].instance_id  # it serves the share
        boto3.client("ec2").terminate_instances(InstanceIds=[first])
        return [first]

    losing, _, record = trained(two, tmp_path, 0.02, end)
    assert any(note.startswith(f"the node {losing.lost[0]} is gone; attempt 2 continues on ") for note in losing.notes)
    starts = [line["from_step"] for line in record if line["kind"] == "start"]
    assert len(starts) >= 2
    assert starts[1] > 0
    assert two.desired() == {"pair": 0}
