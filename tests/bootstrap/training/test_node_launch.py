"""A launch as its nodes tell of it, which a test writes in their place: what is shown, waited for, and ends it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import boto3
import pytest

from bootstrap.agent import documents
from bootstrap.agent.documents import RequestQueue, RunRequest
from bootstrap.agent.node_documents import Attempt, Member, NodeStatus, RunEnd
from bootstrap.aws.account import Account, read_tags
from bootstrap.cli.status import describe_work
from bootstrap.lifecycle.status import groups_now
from bootstrap.nodes import fleet
from bootstrap.nodes.fleet import GpuNode
from bootstrap.progress import Bars
from bootstrap.training.places import nodes_followed
from bootstrap.training.places.launch import NodeLaunch
from bootstrap.training.places.nodes_followed import wait_for_data
from bootstrap.training.sources.dataset import PreparedDataset
from bootstrap.training.sources.source import Prepared
from bootstrap.training.sources.texts import PreparedTexts
from common.errors import ShoalError
from corpus.reading.s3 import S3Path, read_text
from embedded.aws import EmbeddedAws
from infra import topology
from tests.bootstrap.agent.test_documents import TEXTS
from tests.fleet import BUCKET, Fleet
from trainer.config import TrainConfig
from trainer.options.run_options import Slowdown

DATASET = PreparedDataset(f"s3://{BUCKET}/datasets/{1:032x}/dataset.h5")
CONFIG = TrainConfig(data=Path("dataset"), output=Path("output"), epochs=3, slow={1: Slowdown(2.0)})


class Watching(Bars):
    """Remembers what was shown, and does something at it."""

    def __init__(self, *told: tuple[NodeLaunch, Sequence[NodeStatus]], interrupt: bool = False) -> None:
        super().__init__()
        self._told, self._interrupt = list(told), interrupt
        self.shown: list[int] = []

    def at(self, done: int) -> None:
        self.shown.append(done)

    def tick(self) -> None:
        if self._interrupt:
            raise KeyboardInterrupt
        if self._told:
            tell(*self._told.pop(0))


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes_followed, "_PAUSE_SECONDS", 0.01)


@pytest.fixture(scope="module")
def nodes(aws: EmbeddedAws) -> list[GpuNode]:
    """Nodes without agents."""
    boto3.client("s3").create_bucket(Bucket=BUCKET)
    pair = Fleet(share="nfs").add("pair", "g5.xlarge", 2, start="deploy")
    with Bars() as bars:
        return pair.scaled_up(bars)


@pytest.fixture
def launch(nodes: list[GpuNode]) -> NodeLaunch:
    return begun(nodes, DATASET)


def begun(nodes: list[GpuNode], data: Prepared, *, agreed: bool = True) -> NodeLaunch:
    deployment = replace(Fleet(share="nfs").deployment)
    for each in boto3.client("s3").list_objects_v2(Bucket=BUCKET, Prefix="runs/").get("Contents", []):
        boto3.client("s3").delete_object(Bucket=BUCKET, Key=each["Key"])
    made = NodeLaunch(deployment, f"{deployment.name}.20260102T030405-0a1b")
    with Bars() as bars:
        made.start(nodes, CONFIG, data.request(), bars)
    if agreed:
        agree(made, nodes)
    return made


def agree(launch: NodeLaunch, nodes: Sequence[GpuNode], number: int = 1, why: str = "") -> None:
    """Write an attempt, as the nodes do."""
    members = tuple(Member(instance=each.instance_id, address=each.address, gpus=each.gpus) for each in nodes)
    made = Attempt(number=number, token=launch.request.token, members=members, port=20_000, why=why)
    key = documents.attempt_key(launch.run, number)
    boto3.client("s3").put_object(Bucket=BUCKET, Key=key, Body=made.to_json().encode())


def tell(launch: NodeLaunch, statuses: Sequence[NodeStatus]) -> None:
    for instance, status in zip(launch.started, statuses, strict=False):
        key = documents.status_key(instance)
        boto3.client("s3").put_object(Bucket=BUCKET, Key=key, Body=status.to_json().encode())


def of(launch: NodeLaunch, phase: str, **more: object) -> NodeStatus:
    return NodeStatus(**{"token": launch.request.token, "phase": phase, "attempt": 1, **more})  # type: ignore[arg-type]


def asked(launch: NodeLaunch) -> RunRequest:
    key = documents.request_key(launch.deployment.name)
    (found,) = RequestQueue.from_json(str(read_text(boto3.client("s3"), S3Path(BUCKET, key)))).runs
    return found


def test_nodes_are_asked_by_a_document_of_which_a_copy_stays_with_the_run(
    launch: NodeLaunch, nodes: list[GpuNode]
) -> None:
    assert asked(launch) == launch.request
    assert launch.started == tuple(each.instance_id for each in nodes)
    assert (launch.request.trainers, launch.request.readers) == (2, 0)
    assert launch.request.options["epochs"] == ("3",)
    assert launch.request.options["slow"] == ("1:2.0",)
    assert not {"data", "output", "cache", "trust_network"} & {*launch.request.options}
    copy = S3Path(BUCKET, launch.folder.key + documents.REQUEST_NAME)
    assert RunRequest.from_json(str(read_text(boto3.client("s3"), copy))) == launch.request
    launch.ask_to_stop()
    assert asked(launch).stop
    launch.forget()
    key = documents.request_key(launch.deployment.name)
    assert RequestQueue.from_json(str(read_text(boto3.client("s3"), S3Path(BUCKET, key)))).runs == ()


def test_the_bar_shows_the_texts_that_all_nodes_have_read(nodes: list[GpuNode]) -> None:
    launch = begun(nodes, PreparedTexts(TEXTS, ()))
    told = (
        (launch, [of(launch, "stage", read=400), of(launch, "stage", read=900)]),
        (launch, [of(launch, "staged", read=1_000), of(launch, "stage", read=900)]),
        (launch, [of(launch, "run", read=1_000), of(launch, "staged", read=1_000)]),
    )
    with Watching(*told) as bars:
        wait_for_data(launch, bars)
    assert bars.shown == [400, 900]


def test_what_is_told_of_another_launch_or_is_no_status_does_not_count(
    launch: NodeLaunch, nodes: list[GpuNode]
) -> None:
    tell(launch, [replace(of(launch, "failed"), token="ffffffff"), of(launch, "staged")])
    assert list(launch.statuses()) == [nodes[1].instance_id]
    boto3.client("s3").put_object(Bucket=BUCKET, Key=documents.status_key(nodes[1].instance_id), Body=b'{"read": -1}')
    assert launch.statuses() == {}


def test_the_status_of_a_deployment_shows_what_its_nodes_tell(launch: NodeLaunch, nodes: list[GpuNode]) -> None:
    tell(launch, [of(launch, "run", step=1_234, gpu_use=97), of(launch, "failed", attempt=0, error="no disk")])
    first, second = (each.instance_id for each in nodes)
    (scaling,) = boto3.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    name = read_tags(scaling["Tags"])[topology.TAG_DEPLOYMENT]
    (group,) = groups_now(Account(boto3.Session()), name, BUCKET)
    assert {each: describe_work(told) for each, told in group.told.items()} == {
        first: "run, step 1,234, attempt 1, GPUs 97% used",
        second: "failed, no disk",
    }
    boto3.client("s3").put_object(Bucket=BUCKET, Key=documents.status_key(first), Body=b'{"version": 1, "step": "x"}')
    boto3.client("s3").delete_object(Bucket=BUCKET, Key=documents.status_key(second))
    (group,) = groups_now(Account(boto3.Session()), name, BUCKET)
    assert [(each, describe_work(told)) for each, told in group.told.items()] == [
        (first, "unknown: what it tells cannot be used: step is not of type int | None")
    ]


def test_a_node_that_cannot_bring_its_data_is_not_waited_for(launch: NodeLaunch, nodes: list[GpuNode]) -> None:
    tell(launch, [of(launch, "failed", error="the disk is full")])
    with Watching() as bars:
        wait_for_data(launch, bars)


def test_an_interrupt_of_the_waiting_stops_the_launch(launch: NodeLaunch) -> None:
    with Watching(interrupt=True) as bars, pytest.raises(KeyboardInterrupt):
        wait_for_data(launch, bars)
    assert asked(launch).stop


def test_agents_that_do_not_answer_are_an_error_and_stop_the_launch(
    nodes: list[GpuNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = begun(nodes, DATASET, agreed=False)
    monkeypatch.setattr(nodes_followed, "_ANSWER_SECONDS", -1)
    with Watching() as bars, pytest.raises(ShoalError, match=f"^the agent of the node {nodes[0].instance_id} does not"):
        wait_for_data(launch, bars)
    assert asked(launch).stop


def test_nodes_that_somebody_has_ended_are_not_waited_for(launch: NodeLaunch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes_followed, "_LOOK_SECONDS", 0)
    monkeypatch.setattr(fleet, "nodes", lambda _: [])
    monkeypatch.setattr(fleet, "groups", lambda _: [])
    with Watching() as bars, pytest.raises(ShoalError, match=r"^somebody has ended the nodes of .* --resume, which"):
        wait_for_data(launch, bars)


def test_what_ends_an_attempt_is_noted_and_the_next_is_waited_for(
    launch: NodeLaunch, nodes: list[GpuNode], capsys: pytest.CaptureFixture[str]
) -> None:
    class Lost(Watching):
        def tick(self) -> None:
            agree(launch, nodes[:1], 2, f"the node {nodes[1].instance_id} is gone")
            tell(launch, [of(launch, "staged", attempt=2)])

    with Lost() as bars:
        wait_for_data(launch, bars)
    assert list(launch.statuses()) == [nodes[0].instance_id]
    said = f"the node {nodes[1].instance_id} is gone; attempt 2 continues on 1 node"
    assert said in " ".join(capsys.readouterr().err.split())


def test_another_run_is_refused_until_this_one_has_ended(launch: NodeLaunch, nodes: list[GpuNode]) -> None:
    other = NodeLaunch(launch.deployment, launch.run.replace("0a1b", "ffff"))
    with Bars() as bars:
        with pytest.raises(
            ShoalError, match=f"^a training uses the nodes of '{launch.deployment.name}': {launch.run};"
        ):
            other.start(nodes, CONFIG, DATASET.request(), bars)
        end = RunEnd(token=launch.request.token, outcome="finished")
        boto3.client("s3").put_object(Bucket=BUCKET, Key=launch.request.end_key, Body=end.to_json().encode())
        assert launch.end() == end
        other.start(nodes, CONFIG, DATASET.request(), bars)
    assert asked(other) == other.request
