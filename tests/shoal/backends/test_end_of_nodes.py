"""Tests of the end of a run on nodes: which nodes end, and which remain. The tests write the documents of the nodes."""

from dataclasses import replace
from unittest.mock import Mock

import pytest

from common import names
from common.errors import ShoalError
from shoal.aws import fleet
from shoal.backends.attaching import find_training
from shoal.backends.nodes import NodesBackend
from shoal.runs.run import Run
from shoal.runs.train import carry_out
from tests.shoal.backends.launches import CONFIG, DATASET, GROUP, OTHER, claim, end, put, requests

pytestmark = pytest.mark.usefixtures("brisk")


def test_an_ended_run_is_not_stopped_but_its_nodes_are(launch, monkeypatch, messages):
    monkeypatch.setattr(fleet, "groups", lambda *_, **__: ["group"])
    scaled = []
    monkeypatch.setattr(fleet, "scale_to_zero", lambda _, groups, **__: scaled.extend(groups))
    end(launch, "failed", "no disk")
    assert find_training(launch.backend.deployment, launch.run).stop() == ("failed", "no disk")
    assert scaled == ["group"]
    with messages.raises(ShoalError):
        find_training(launch.backend.deployment, "x")


def test_a_refused_command_does_not_end_the_nodes_of_another_one(launch, on_their_group, scaled):
    put(names.request_key(launch.backend.deployment.name), '{"version": 1}')
    with pytest.raises(ShoalError, match="is not a request of this version"):
        carry_out(Run.of_config(CONFIG, DATASET, name=launch.run), NodesBackend(launch.backend.deployment))
    assert scaled == []


def test_nodes_end_after_an_error_even_if_aws_no_longer_lists_their_groups(launch, scaled, monkeypatch):
    backend = NodesBackend(launch.backend.deployment)
    launch.forget()

    def fail(*_, **__):
        monkeypatch.setattr(fleet, "groups", lambda *_, **__: pytest.fail("AWS does not answer"))
        raise ShoalError("no zone is left")

    monkeypatch.setattr(fleet, "groups", lambda *_, **__: [GROUP])
    monkeypatch.setattr("shoal.backends.node_fleet.scale_up", fail)
    with pytest.raises(ShoalError, match="no zone is left"):
        carry_out(Run.of_config(CONFIG, DATASET, name=launch.run), backend)
    assert scaled == [GROUP]
    assert launch.requests.read() is None


def test_a_stop_without_nodes_ends_the_run_and_all_groups(launch, on_their_group, scaled, monkeypatch):
    training = find_training(launch.backend.deployment, launch.run)
    monkeypatch.setattr(NodesBackend, "look_seconds", 0)
    monkeypatch.setattr(training.backend.fleet, "require_running", Mock(side_effect=ShoalError("no node is left")))
    with pytest.raises(ShoalError, match="no node is left"):
        training.stop()
    assert scaled == [GROUP]
    assert launch.requests.read() is None


def test_a_run_that_no_node_executes_ends_at_once(launch, other, scaled, monkeypatch):
    end(launch)
    claim(other, config=OTHER)  # its command was killed before nodes started
    monkeypatch.setattr(fleet, "groups", lambda *_, **__: [replace(GROUP, desired=0)])
    assert find_training(other.backend.deployment, other.run).stop() == ("stopped", "")
    assert requests(other) == ()
    assert [each.name for each in scaled] == [GROUP.name]
