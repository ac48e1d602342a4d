"""AWS gone while a training is watched: the emulator stopped or killed, and Ctrl-C pressed when something is said."""

import json
import os
import shlex
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import boto3
import psutil
import pytest

from bootstrap.aws.retry import Abandoned, retrying
from bootstrap.nodes import fleet
from bootstrap.progress import Bars
from bootstrap.training.places import nodes_followed
from bootstrap.training.places.deployment import OnDeployment
from embedded.aws import EmbeddedAws
from shoal.testing import asked
from tests.aws import make_roles
from tests.fleet import BUCKET, Fleet, boot_agent
from tests.trained import train_on
from trainer.config import TrainConfig

DATASET = f"s3://{BUCKET}/datasets/{1:032x}/dataset.h5"
SUMMARY = {
    "stopped": True,
    **dict.fromkeys(("rows", "rows_seen", "epochs", "world_size", "seconds", "samples_per_second"), 1),
    "rows_of_ranks": [1],
    "share_of_ideal": None,
    "balanced": None,
    "lost": None,
    "times": {},
    "wall": 1,
    "profile": [{}],
}
# Ranks that train until they are asked to stop, which is said in the summary.
RANKS = f"""
    said={shlex.quote(json.dumps(SUMMARY))}
    trap 'printf "%s" "$said" >"$(ls -d "$NODE_ROOT"/mnt/share/runs/*/)summary.json"; exit 0' TERM
    touch "$NODE_ROOT/training"
    while :; do sleep 0.1; done"""


class Person:
    """Presses Ctrl-C when something is said."""

    def __init__(self, aws: EmbeddedAws) -> None:
        (server,) = psutil.Process(aws._watchdog.pid).children()  # type: ignore[union-attr]
        self.server, self.said = server, list[str]()
        self.presses: list[str] = []
        self.then = lambda: None
        self.gone = False

    def takes_aws_away(self) -> None:
        self.server.send_signal(signal.SIGSTOP)
        self.gone = True

    def hears(self, text: str) -> None:
        self.said.append(text)
        if not self.gone:  # a busy machine may be as slow
            return
        if self.presses and self.presses[0] in text:
            self.presses.pop(0)
            os.kill(os.getpid(), signal.SIGINT)
        elif not self.presses:
            self.then()


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[EmbeddedAws]:
    """One for each test, which takes it away: a process of its own."""
    with EmbeddedAws(tmp_path / "aws") as running, asked(running):
        make_roles(boto3.client("iam"))
        s3 = boto3.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        s3.put_object(Bucket=BUCKET, Key=DATASET.removeprefix(f"s3://{BUCKET}/"), Body=b"not read by anyone")
        yield running


@pytest.fixture
def person(aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    listening = Person(aws)
    monkeypatch.setattr(retrying, "notice", 0.2)
    monkeypatch.setattr(retrying, "pause", 0.1)
    monkeypatch.setattr(retrying, "say", listening.hears)
    monkeypatch.setattr(fleet, "note", listening.hears)
    monkeypatch.setattr(nodes_followed, "_PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(OnDeployment, "pause", 0.1)
    yield listening
    if listening.server.is_running() and listening.server.status() == psutil.STATUS_STOPPED:
        listening.server.resume()
    retrying._note_answer()


class Watching(Bars):
    """Takes AWS away when the ranks train."""

    def __init__(self, person: Person, folder: Path) -> None:
        super().__init__()
        self._person, self._folder, self._stage = person, folder, ""

    def stage(self, name: str, total: int, unit: str | None = None) -> None:
        super().stage(name, total, unit)
        self._stage = name

    def tick(self) -> None:
        starts = self._stage == "start the ranks" and any(self._folder.glob("nodes/*/training"))
        if starts and not self._person.gone:
            self._person.takes_aws_away()

    def note(self, text: str) -> None:
        self._person.hears(text)


def train(aws: EmbeddedAws, person: Person, output: Path) -> dict[str, object]:
    one = Fleet().add("one", "g5.xlarge", 1, boot=boot_agent(RANKS))
    config = TrainConfig(data=Path("dataset"), output=output)
    with Watching(person, aws.folder) as bars:
        return train_on(one.deployment, config, DATASET, bars)


@pytest.mark.soak
def test_a_second_ctrl_c_ends_the_command_and_reports_what_continues(aws, person, tmp_path) -> None:
    person.presses = ["AWS has not answered since", "the ranks are asked to stop as soon as AWS answers"]
    with pytest.raises(Abandoned):
        train(aws, person, tmp_path / "output")
    assert person.presses == []
    assert "GPU nodes may still run, and cost money" in person.said[-1]
    assert "the deployment's guard ends them when they have had no work for a while" in person.said[-1]
    assert "--auto-scaling-group-name fleet-" in person.said[-1]


@pytest.mark.soak
def test_a_ctrl_c_while_aws_is_away_stops_the_ranks_when_it_is_back(aws, person, tmp_path) -> None:
    person.presses = ["AWS has not answered since"]
    person.then = lambda: threading.Timer(0, person.server.resume).start()
    done = train(aws, person, tmp_path / "output")
    assert (done["stopped"], done["stopped_by"]) == (True, "SIGINT")
    assert any(text.startswith("AWS answers again") for text in person.said)
    groups = boto3.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    assert [group["DesiredCapacity"] for group in groups] == [0]


def test_ctrl_c_while_nodes_cannot_be_ended_prints_the_command_that_ends_them(aws, person) -> None:
    one = Fleet().add("one", "g5.xlarge", 1)
    groups = fleet.groups(one.deployment)
    person.takes_aws_away()
    person.presses = ["AWS has not answered since"]
    with pytest.raises(Abandoned):
        fleet.scale_to_zero(one.deployment, groups)
    assert f"--auto-scaling-group-name {groups[0].scaling_group}" in person.said[-1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_while_aws_answers_ctrl_c_keeps_no_node_from_being_ended(aws, person) -> None:
    one = Fleet().add("one", "g5.xlarge", 1)
    one.scaling.set_desired_capacity(AutoScalingGroupName=f"{one.name}-one", DesiredCapacity=1)

    def pressed() -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        return False

    fleet.scale_to_zero(one.deployment, fleet.groups(one.deployment), unless=pressed)
    assert one.desired() == {"one": 0}
