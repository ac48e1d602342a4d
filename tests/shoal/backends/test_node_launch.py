"""Tests of a launch on nodes. The tests write the documents of the nodes."""

import itertools
import re
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import Mock

import boto3
import pytest

from bootstrap.node.documents import RequestDocument, RunRequest
from bootstrap.node.node_documents import Attempt, Member, NodeStatus, RunEnd
from common import names
from common.errors import ShoalError
from common.progress import ProgressReporter, reporting
from corpus.reading.s3 import S3Path, read_text
from shoal.aws import fleet
from shoal.aws.account import Account, read_tags
from shoal.aws.fleet import GpuGroup
from shoal.backends import agents
from shoal.backends.attaching import find_training, overview
from shoal.backends.nodes import NodesBackend
from shoal.cli.verbs.status import describe_outlook, describe_status
from shoal.deployments.status import read_groups
from shoal.runs.follow import follow
from shoal.runs.run import Run
from shoal.runs.sources.dataset import PreparedDataset
from shoal.runs.sources.texts import PreparedTexts
from shoal.runs.train import carry_out
from tests.bootstrap.node.test_documents import TEXTS
from tests.fleet import BUCKET, Fleet
from trainer.config import configured

DATASET = PreparedDataset(f"s3://{BUCKET}/datasets/{1:032x}/dataset.h5")
CONFIG = configured({"model": "lstm", "data": Path("dataset"), "output": Path("output"), "epochs": 3, "slow": {1: 2.0}})
OTHER = CONFIG.changed(epochs=4)
NUMBERS = itertools.count()
GROUP = GpuGroup(name="pair", scaling_group="demo", size=2, desired=2, gpus=1, spot=False, stays=False)


class Watching(ProgressReporter):
    """Reporter that records its calls, and writes statuses."""

    def __init__(self, *statuses):
        self._statuses, self.shown = list(statuses), []

    def at(self, done):
        self.shown.append(done)

    def tick(self):
        if self._statuses:
            tell(*self._statuses.pop(0))


@pytest.fixture(autouse=True)
def brisk(monkeypatch):
    """Poll often, and never look for nodes: they have ended."""
    monkeypatch.setattr(NodesBackend, "pause", 0.01)
    monkeypatch.setattr(NodesBackend, "look_seconds", float("inf"))


@pytest.fixture(scope="module")
def deployment(nodes):
    return Fleet(share="nfs").deployment


@pytest.fixture
def start(deployment, nodes, messages):
    """Function that starts a run on the nodes, on a deployment of a new name."""
    started = replace(deployment, name=f"launch-{next(NUMBERS)}")
    messages.hide(started.name, "DEPLOYMENT")
    for number, node in enumerate(nodes):
        messages.hide(node.instance_id, f"NODE{number}")

    def start(data=DATASET, *, agreed=True):
        made = new_launch(started, "0a1b")
        claim(made, data)
        made.start([each.instance_id for each in nodes])
        if agreed:
            agree(made, nodes)
        return made

    return start


@pytest.fixture
def launch(start):
    return start()


@pytest.fixture
def other(launch):
    """Another run of the deployment, which has not started."""
    return new_launch(launch.backend.deployment, "ffff")


@pytest.fixture
def on_their_group(monkeypatch):
    """Add the group of the nodes to the launch's deployment."""
    monkeypatch.setattr(fleet, "groups", lambda *_, **__: [GROUP])


def new_launch(deployment, suffix):
    """Return the launch of a run on the deployment's nodes, with its backend."""
    backend = NodesBackend(deployment)
    backend._launch = backend.new_launch(f"{deployment.name}.20260102T030405-{suffix}")
    backend._launch.backend = backend
    return backend._launch


def claim(launch, data=DATASET, config=CONFIG):
    launch.claim(Run.of_config(config, data), trainers=2, readers=0, share="nfs")


def wait_for_data(launch):
    """Follow a run until its ranks have their data."""
    run = Run.of_config(CONFIG, DATASET, name=launch.run)
    with pytest.raises(HasData):
        follow(run, launch.backend, on_state=HasData.check)


class HasData(Exception):  # noqa: N818
    @classmethod
    def check(cls, state):
        if state.staging is None:
            raise cls


def agree(launch, nodes, number=1, why=""):
    """Write an attempt, like the nodes."""
    members = tuple(Member(instance=each.instance_id, address=each.address, gpus=each.gpus) for each in nodes)
    made = Attempt(number=number, token=launch.request.token, members=members, port=20_000, why=why)
    put(names.attempt_key(launch.run, number), made.to_json())


def tell(launch, statuses):
    for instance, status in zip(launch.started, statuses, strict=False):
        put(names.status_key(instance), status.to_json())


def status_of(launch, phase, **more):
    return NodeStatus(**{"token": launch.request.token, "phase": phase, "attempt": 1, **more})


def requests(launch):
    key = names.request_key(launch.backend.deployment.name)
    return RequestDocument.from_json(str(read_text(boto3.client("s3"), S3Path(BUCKET, key)))).runs


def put(key, text):
    boto3.client("s3").put_object(Bucket=BUCKET, Key=key, Body=text.encode())


def test_a_request_is_a_document_and_the_run_keeps_a_copy(launch, nodes):
    assert requests(launch) == (launch.request,)
    assert launch.started == tuple(each.instance_id for each in nodes)
    assert (launch.request.trainers, launch.request.readers) == (2, 0)
    assert launch.request.options["epochs"] == ("3",)
    assert launch.request.options["slow"] == ("1:2.0",)
    assert not {"data", "output", "cache"} & {*launch.request.options}
    copy = S3Path(BUCKET, names.request_copy_key(launch.run))
    kept = RunRequest.from_json(str(read_text(boto3.client("s3"), copy)))
    assert (launch.request.ready, replace(kept, ready=True)) == (True, launch.request)
    launch.ask_to_stop()
    assert requests(launch)[0].stop
    launch.forget()
    assert not requests(launch)


def test_the_bar_shows_the_text_that_all_nodes_have_read(start):
    launch = start(PreparedTexts(TEXTS, ()))
    statuses = (
        [status_of(launch, "stage", read=400), status_of(launch, "stage", read=900)],
        [status_of(launch, "staged", read=1_000), status_of(launch, "stage", read=900)],
        [status_of(launch, "run", read=1_000), status_of(launch, "staged", read=1_000)],
    )
    watching = Watching(*((launch, each) for each in statuses))
    with reporting(watching):
        wait_for_data(launch)
    assert watching.shown == [400, 900]


def test_invalid_statuses_and_those_of_another_launch_do_not_count(launch, nodes):
    tell(launch, [status_of(launch, "failed", token="ffffffff"), status_of(launch, "staged")])
    assert list(launch.reports.statuses(launch.started)) == [nodes[1].instance_id]
    put(names.status_key(nodes[1].instance_id), '{"read": -1}')
    assert launch.reports.statuses(launch.started) == {}


def test_the_status_of_a_deployment_shows_the_statuses_of_its_nodes(launch, nodes, messages):
    failed = status_of(launch, "failed", attempt=0, error="no disk")
    tell(launch, [status_of(launch, "run", step=1_234, steps=4_000, gpu_use=97), failed])
    first, second = (each.instance_id for each in nodes)
    (scaling,) = boto3.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    name = read_tags(scaling["Tags"])[names.TAG_DEPLOYMENT]
    (group,) = read_groups(Account(boto3.Session()), name, BUCKET)
    assert group.statuses.keys() == {first, second}
    for each in (first, second):
        messages.check(describe_status(group.statuses[each]))
    put(names.status_key(first), '{"version": 2, "step": "x"}')
    boto3.client("s3").delete_object(Bucket=BUCKET, Key=names.status_key(second))
    (group,) = read_groups(Account(boto3.Session()), name, BUCKET)
    assert group.statuses.keys() == {first}
    messages.check(describe_status(group.statuses[first]))


def test_the_command_does_not_wait_for_a_node_without_data(launch, nodes):
    tell(launch, [status_of(launch, "failed", error="the disk is full")])
    wait_for_data(launch)


def test_a_silent_agent_is_an_error(start, monkeypatch, messages):
    launch = start(agreed=False)
    monkeypatch.setattr(agents, "_ANSWER_SECONDS", -1)
    with messages.raises(ShoalError):
        wait_for_data(launch)


def test_the_command_does_not_wait_for_stopped_nodes(launch, monkeypatch, messages):
    monkeypatch.setattr(NodesBackend, "look_seconds", 0)
    monkeypatch.setattr(fleet, "nodes", lambda _: [])
    monkeypatch.setattr(fleet, "groups", lambda *_, **__: [])
    with messages.raises(ShoalError):
        wait_for_data(launch)


def test_the_reason_of_a_new_attempt_is_noted(launch, nodes, capsys, messages):
    class Lost(Watching):
        def tick(self):
            agree(launch, nodes[:1], 2, f"the node {nodes[1].instance_id} is gone")
            tell(launch, [status_of(launch, "staged", attempt=2)])

    with reporting(Lost()):
        wait_for_data(launch)
    assert list(launch.reports.statuses(launch.started)) == [nodes[0].instance_id]
    messages.check(" ".join(capsys.readouterr().err.split()))


def test_another_run_is_refused_until_this_one_ends(launch, other, on_their_group, messages):
    with messages.raises(ShoalError):
        claim(other, config=OTHER)
    end(launch)
    claim(other, config=OTHER)
    assert requests(other) == (other.request,)
    assert (launch.keeps_nodes(), launch.is_wanted(), other.keeps_nodes(), other.is_wanted()) == (
        *(True, False),  # its command leaves the nodes to the other run
        *(False, True),
    )
    launch.forget()
    assert requests(other) == (other.request,)


def test_the_overview_has_the_requested_run_with_its_attempts(launch, other, nodes, on_their_group):
    agree(launch, nodes[:1], 2, f"the node {nodes[1].instance_id} is gone")
    (running,) = overview(launch.backend.deployment, {})
    assert (running.run, running.state) == (launch.run, "running")
    assert [(each.number, len(each.members)) for each in running.attempts] == [(1, 2), (2, 1)]
    assert running.attempts[1].why == f"the node {nodes[1].instance_id} is gone"
    end(launch, "stopped")
    assert [each.state for each in overview(launch.backend.deployment, {})] == ["stopped"]
    claim(other, config=OTHER)
    (starting,) = overview(launch.backend.deployment, {})
    assert (starting.run, starting.state, starting.attempts) == (other.run, "starting", [])


def test_the_overview_has_progress_end_and_cost_of_a_run(launch, nodes, on_their_group, monkeypatch):
    priced = [replace(each, launched=datetime(2026, 1, 1, tzinfo=UTC)) for each in nodes]
    monkeypatch.setattr(fleet, "nodes", lambda _: priced)
    status = status_of(launch, "run", step=30, steps=40, ends=time.time() + 1_800)
    (run,) = overview(launch.backend.deployment, {nodes[0].instance_id: status})
    assert (run.outlook.done, run.outlook.dollars_at_least) == (0.75, run.outlook.dollars)
    assert run.outlook.dollars < 0.1  # the nodes ran for a day before
    for reports in ({}, {nodes[0].instance_id: "Shoal cannot read it"}, {nodes[1].instance_id: status}):
        (unknown,) = overview(launch.backend.deployment, reports)
        assert unknown.outlook.done is None
    assert re.search(r"\$0\.0\d so far, about \$1\.\d\d in total", describe_outlook(run.outlook))


def test_the_end_that_a_node_wrote_stays(launch):
    end(launch)
    launch.requests.write_end(launch.request)
    assert launch.end() == RunEnd(token=launch.request.token, outcome="finished")


def test_a_run_without_nodes_is_replaced_and_its_end_is_written(launch, other, monkeypatch, messages):
    monkeypatch.setattr(fleet, "groups", lambda _: [])
    with pytest.raises(ShoalError, match=r"^a training uses the nodes"):  # it may be about to start nodes
        claim(other, config=OTHER)
    monkeypatch.setattr("shoal.backends.nodes.READY_SECONDS", 0)
    claim(other, config=OTHER)
    messages.check(launch.end().error)
    assert requests(other) == (other.request,)


def test_an_interrupt_during_the_claim_leaves_no_request(launch, on_their_group, monkeypatch):
    launch.forget()
    write = launch.requests.store.write_if

    def interrupted(*document):
        monkeypatch.setattr(launch.requests.store, "write_if", write)
        write(*document)
        raise KeyboardInterrupt

    monkeypatch.setattr(launch.requests.store, "write_if", interrupted)
    backend = NodesBackend(launch.backend.deployment)
    backend.requests = launch.requests
    with pytest.raises(KeyboardInterrupt):
        carry_out(Run.of_config(CONFIG, DATASET, name=launch.run), backend)
    assert launch.requests.read() is None


def test_an_active_run_is_not_replaced_by_a_resume_with_other_options(launch, on_their_group):
    with pytest.raises(ShoalError, match=r"^a training uses the nodes"):
        claim(new_launch(launch.backend.deployment, "0a1b"), config=replace(OTHER, resume=True))
    assert requests(launch) == (launch.request,)


def test_the_same_command_follows_its_launch_until_the_results_are_fetched(launch, other):
    claim(other)
    assert (other.already_started, other.run, other.request) == (True, launch.run, launch.request)
    claim(other, config=replace(CONFIG, resume=True))
    assert other.run == launch.run
    end(launch)
    third = new_launch(launch.backend.deployment, "cccc")
    claim(third)
    assert (third.already_started, third.run) == (True, launch.run)
    third.forget()
    fourth = new_launch(launch.backend.deployment, "dddd")
    claim(fourth)
    assert (fourth.already_started, fourth.run) == (False, launch.run.replace("0a1b", "dddd"))


def test_a_stopped_launch_and_a_forced_training_are_not_followed(launch, other):
    end(launch, "stopped")
    claim(other)
    assert not other.already_started
    end(other)
    forced = new_launch(launch.backend.deployment, "cccc")
    claim(forced, config=replace(CONFIG, force=True))
    assert not forced.already_started


def end(launch, outcome="finished", error=""):
    put(launch.request.end_key, RunEnd(token=launch.request.token, outcome=outcome, error=error).to_json())
    assert launch.end()


def test_an_ended_run_is_not_stopped_but_its_nodes_are(launch, monkeypatch, messages):
    monkeypatch.setattr(fleet, "groups", lambda *_, **__: ["group"])
    scaled = []
    monkeypatch.setattr(fleet, "scale_to_zero", lambda _, groups, **__: scaled.extend(groups))
    end(launch, "failed", "no disk")
    assert find_training(launch.backend.deployment, launch.run).stop() == ("failed", "no disk")
    assert scaled == ["group"]
    with messages.raises(ShoalError):
        find_training(launch.backend.deployment, "x")


@pytest.fixture
def scaled(monkeypatch):
    """Groups that were scaled to zero."""
    found = []
    monkeypatch.setattr(fleet, "scale_to_zero", lambda _, groups, **__: found.extend(groups))
    return found


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
