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
from shoal.backends import followed
from shoal.backends.attaching import find_training
from shoal.backends.deployment import DeploymentPlace
from shoal.backends.deployment_run import DeploymentRun
from shoal.backends.followed import LONGEST_STOP_SECONDS
from shoal.backends.launch import NodeLaunch, requested_runs
from shoal.backends.train import train
from shoal.runs.run import LaunchOptions
from shoal.runs.sources.dataset import DatasetSource, PreparedDataset
from tests.bootstrap.node.world import request
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
    left = train(DatasetSource(DATASET), config, DeploymentPlace(one.deployment, LaunchOptions(detach=True)))
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
    launch = NodeLaunch(Fleet().deployment, "demo.20260102T030405-0a1b")
    messages.hide(launch.deployment.name, "FLEET")
    launch._request = request(max_dollars=10.0)
    run = DeploymentRun(
        launch,
        PreparedDataset(DATASET),
        configured({"model": "lstm", "data": Path("dataset"), "output": Path("output")}),
    )
    assert run._until() is None  # without a cost limit
    run._spending = SimpleNamespace(so_far=lambda: 4.0, hourly=lambda: 12.0)
    monkeypatch.setattr(time, "time", lambda: 1_000.0)
    assert run._until() == 1_000 + 1_800 - LONGEST_STOP_SECONDS
    run._spending = SimpleNamespace(so_far=lambda: 9.9, hourly=lambda: 12.0)
    with messages.raises(ShoalError):
        run._until()
    run.deployment.outputs["MaxDollars"] = "10.0"
    with messages.raises(ShoalError):
        run._until()
    run._spending = SimpleNamespace(so_far=lambda: None, hourly=lambda: None)
    with messages.raises(ShoalError):
        run._until()


@pytest.mark.parametrize("stops_runs", [True, False])
def test_a_run_that_the_guard_stopped_says_why_and_what_to_do(stops_runs, monkeypatch, messages):
    launch = NodeLaunch(Fleet().deployment, "demo.20260102T030405-0a1b")
    launch._request = request()
    run = DeploymentRun(
        launch,
        PreparedDataset(DATASET),
        configured({"model": "lstm", "data": Path("dataset"), "output": Path("output")}),
    )
    found = AnnouncedDeletion(
        at=datetime.now(UTC), reason="REASON", remedy="To keep it, do this.", stops_runs=stops_runs
    )
    monkeypatch.setattr(followed, "find_announcement", lambda _: found)
    messages.check(run.why_stopped({"rows_seen": 0}))
