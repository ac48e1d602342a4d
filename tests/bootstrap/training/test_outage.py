"""Ctrl-C while the nodes of a training are being ended: AWS answers, or does not."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import boto3
import psutil
import pytest
from shoal_local_aws.account import use_emulator
from shoal_local_aws.aws import EmbeddedAws
from tests.local_aws.accounts import make_roles

from bootstrap.aws.cdk import WHEELS
from bootstrap.aws.retry import Abandoned, retrying
from bootstrap.nodes import fleet
from tests.fleet import BUCKET, Fleet


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[EmbeddedAws]:
    """One for each test, which takes it away: a process of its own."""
    with EmbeddedAws(tmp_path / "aws", wheels=WHEELS) as running, use_emulator(running):
        make_roles(boto3.client("iam"))
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        yield running


def test_ctrl_c_while_nodes_cannot_be_ended_prints_the_command_that_ends_them(
    aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Fleet().add("one", "g5.xlarge", 1)
    groups = fleet.groups(one.deployment)
    (server,) = psutil.Process(aws._watchdog.pid).children()  # type: ignore[union-attr]
    said: list[str] = []

    def press(text: str) -> None:
        said.append(text)
        if len(said) == 1:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(retrying, "notice", 0.2)
    monkeypatch.setattr(retrying, "say", press)
    monkeypatch.setattr(fleet, "note", said.append)
    server.suspend()
    try:
        with pytest.raises(Abandoned):
            fleet.scale_to_zero(one.deployment, groups)
        told = said[-1]
    finally:
        server.resume()
        retrying._record_answer()
    assert "GPU nodes may still be running and cost money" in told
    assert "the deployment's guard stops them when they have been idle for a while" in told
    assert f"--auto-scaling-group-name {groups[0].scaling_group}" in told
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_while_aws_answers_ctrl_c_keeps_no_node_from_being_ended(aws) -> None:
    one = Fleet().add("one", "g5.xlarge", 1)
    one.scaling.set_desired_capacity(AutoScalingGroupName=f"{one.name}-one", DesiredCapacity=1)

    def pressed() -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        return False

    fleet.scale_to_zero(one.deployment, fleet.groups(one.deployment), unless=pressed)
    assert one.desired() == {"one": 0}
