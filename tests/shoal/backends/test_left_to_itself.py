"""Tests of training runs on nodes of the embedded AWS that outlive their command."""

import secrets
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from shoal_guard.deletion import AnnouncedDeletion

from common.errors import ShoalError
from shoal.aws import scale_up
from shoal.backends import deployment_runs
from shoal.backends.agents import LONGEST_STOP_SECONDS
from shoal.backends.attaching import find_training
from shoal.backends.deployment_runs import requested_runs
from shoal.backends.node_fleet import NodeFleet
from shoal.backends.nodes import NodesBackend
from shoal.runs.sources.dataset import DatasetSource
from shoal.runs.train import train
from tests.fleet import Fleet, boot_agent
from tests.secrets import places_of
from tests.shoal.backends.on_nodes import DATASET
from trainer.config import configured

pytestmark = pytest.mark.usefixtures("node_bucket")


@pytest.mark.soak
def test_a_detached_training_is_followed_by_another_command_and_leaves_no_secret(aws, tmp_path, monkeypatch):
    one, secret = Fleet().add("one", "g5.xlarge", 1, boot=boot_agent()), secrets.token_hex(20)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    monkeypatch.setattr(scale_up, "_PAUSE_SECONDS", 0.1)
    config = configured(
        {"model": "lstm", "data": Path("dataset"), "output": tmp_path / "here", "epochs": 6, "threads": 1, "seed": 3}
    )
    left = train(DatasetSource(DATASET), config, NodesBackend(one.deployment), detach=True)
    assert (left["detached"], left["deployment"]) == (True, one.name)
    assert one.desired() == {"one": 1}
    assert places_of(secret, aws.folder, tmp_path) == []
    found = find_training(one.deployment, None).follow(tmp_path / "there")
    assert (found["stopped"], found["rows_seen"]) == (False, 6 * found["rows"])
    assert (tmp_path / "there" / "model" / "config.json").exists()
    assert places_of(secret, aws.folder, tmp_path) == []
    assert requested_runs(one.deployment).read() is None
    assert one.desired() == {"one": 0}


def test_the_rest_of_the_cost_limit_determines_the_time_of_the_nodes(monkeypatch, messages):
    deployment = Fleet().deployment
    nodes = NodeFleet(deployment)
    messages.hide(deployment.name, "FLEET")
    assert nodes.stop_time(None) is None
    nodes._spending = SimpleNamespace(so_far=lambda: 4.0, hourly=lambda: 12.0)
    monkeypatch.setattr(time, "time", lambda: 1_000.0)
    assert nodes.stop_time(10.0) == 1_000 + 1_800 - LONGEST_STOP_SECONDS
    nodes._spending = SimpleNamespace(so_far=lambda: 9.9, hourly=lambda: 12.0)
    with messages.raises(ShoalError):
        nodes.stop_time(10.0)
    deployment.outputs["MaxDollars"] = "10.0"
    with messages.raises(ShoalError):
        nodes.stop_time(10.0)
    nodes._spending = SimpleNamespace(so_far=lambda: None, hourly=lambda: None)
    with messages.raises(ShoalError):
        nodes.stop_time(10.0)


@pytest.mark.parametrize("stops_runs", [True, False])
def test_a_run_that_the_guard_stopped_says_why_and_what_to_do(stops_runs, monkeypatch, messages):
    found = AnnouncedDeletion(
        at=datetime.now(UTC), reason="REASON", remedy="To keep it, do this.", stops_runs=stops_runs
    )
    monkeypatch.setattr(deployment_runs, "find_announcement", lambda _: found)
    messages.check(deployment_runs.stop_reason(Fleet().deployment).why)
