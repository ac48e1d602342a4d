"""Tests of a launch on nodes. The tests write the documents of the nodes."""

import re
import time
from dataclasses import replace
from datetime import UTC, datetime

import boto3
import pytest

from bootstrap.node.documents import RunRequest
from bootstrap.node.node_documents import RunEnd
from common import names
from common.errors import ShoalError
from common.progress import ProgressReporter, reporting
from corpus.reading.s3 import S3Path, read_text
from shoal.aws import fleet
from shoal.aws.account import Account, read_tags
from shoal.backends import agents
from shoal.backends.attaching import overview
from shoal.backends.nodes import NodesBackend
from shoal.cli.verbs.status import describe_outlook, describe_status
from shoal.deployments.status import read_groups
from shoal.runs.follow import follow
from shoal.runs.run import Run
from shoal.runs.sources.texts import PreparedTexts
from shoal.runs.train import carry_out
from tests.bootstrap.node.test_documents import TEXTS
from tests.fleet import BUCKET
from tests.shoal.backends.launches import (
    CONFIG,
    DATASET,
    OTHER,
    agree,
    claim,
    end,
    new_launch,
    put,
    requests,
    status_of,
    tell,
)

pytestmark = pytest.mark.usefixtures("brisk")


class Watching(ProgressReporter):
    """Reporter that records its calls, and writes statuses."""

    def __init__(self, *statuses):
        self._statuses, self.shown = list(statuses), []

    def at(self, done):
        self.shown.append(done)

    def tick(self):
        if self._statuses:
            tell(*self._statuses.pop(0))


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
