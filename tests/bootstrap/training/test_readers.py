"""Readers on nodes of the embedded AWS: what they leave on the share, and what happens when they die."""

import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
import psutil
import pytest

from bootstrap.cli.words_preview import describe_reading
from bootstrap.errors import ShoalError
from bootstrap.nodes import fleet as nodes_of_fleets
from bootstrap.nodes import scale_up, shared_folder
from bootstrap.nodes.fleet import of_role
from bootstrap.nodes.run_command import NodeCommand
from bootstrap.progress import Bars
from bootstrap.training import node_scripts
from bootstrap.training import readers as readers_module
from bootstrap.training.node_scripts import STREAM, TrainingRun
from bootstrap.training.readers import ReaderCommand, Readers, count_readers, reading, reading_now
from corpus.reading.s3 import Place, read_text
from corpus.stream.progress import Status
from embedded.aws import EmbeddedAws
from tests.fleet import BUCKET, Fleet, report
from trainer.config import TrainConfig

BOOT = f"""\
program="$NODE_ROOT/usr/local/bin/shoal-python"
printf '#!/bin/bash\\nexec %s "$@"\\n' {shlex.quote(sys.executable)} >"$program"
chmod 755 "$program"
{report(state="ready", log="")}"""

# What the tests' readers run: a line a start, with their own argument, in a file of the stream.
PROGRAM = """
import os, pathlib, sys, time
folder, own, then = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
with (folder / own.replace("/", "-of-")).open("a") as file:
    file.write(f"{os.getpid()}\\n")
print("has begun", flush=True)
if then == "fails":
    sys.exit("its source is not there")
if then == "goes on":
    time.sleep(600)
"""


def does(then: str, *, only: int | None = None) -> ReaderCommand:
    """Readers that end, fail or go on; with `only` one of them, while the others go on."""

    def command(reader: int, readers: int) -> Sequence[str]:
        what = then if only in (None, reader) else "goes on"
        return ["-c", PROGRAM, STREAM, f"{reader}/{readers}", what]

    return command


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedAws]:
    with EmbeddedAws(tmp_path_factory.mktemp("aws")) as running, pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        patch.setattr(scale_up, "_PAUSE_SECONDS", 0.1)
        boto3.Session().client("s3").create_bucket(Bucket=BUCKET)
        yield running


class Cluster:
    """A node that trains and two that read, which share a folder."""

    def __init__(self, aws: EmbeddedAws, number: int) -> None:
        self._folder = aws.folder
        self.fleet = Fleet(share="nfs").add("train", "g4dn.xlarge", 1, boot=BOOT)
        self.fleet.add("read", "m5.xlarge", 2, role="read", boot=BOOT)
        self.run = TrainingRun(
            name=f"{self.fleet.name}.20260102T030405-{number:04x}",
            dataset="0123456789ab",
            bucket=BUCKET,
            region="us-east-1",
            share="nfs",
        )

    def read(self, command: ReaderCommand, meanwhile: Callable[[Readers], None]) -> None:
        deployment = self.fleet.deployment
        with Bars() as bars, scale_up.scaled_up(deployment, bars, readers=True) as nodes:
            shared_folder.serve(deployment.session, nodes)
            (self._serves,) = self._folder.glob(f"*/{nodes[0].instance_id}")
            with reading(deployment, of_role(nodes, "read"), self.run, command, bars) as readers:
                meanwhile(readers)

    def starts(self) -> dict[str, list[int]]:
        """By reader the processes that it was, as the stream has them on the node that trains, while that is there."""
        folder = self._serves / "mnt" / "share" / "streams" / self.run.name
        return {path.name: [int(line) for line in path.read_text().splitlines()] for path in folder.glob("*")}

    def log(self, reader: int) -> str | None:
        place = Place(BUCKET, f"{self.run.folder.key}reader-{reader}.log")
        return read_text(boto3.Session().client("s3"), place)


@pytest.fixture
def cluster(aws: EmbeddedAws, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    made = Cluster(aws, abs(hash(request.node.name)) % 0xFFFF)
    yield made
    for name, desired in made.fleet.desired().items():
        assert desired == 0, f"{name} was left with {desired} nodes"


def until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_each_reader_runs_its_own_command_and_is_stopped_at_the_end(cluster: Cluster) -> None:
    running: list[psutil.Process] = []

    def meanwhile(readers: Readers) -> None:
        until(lambda: len(cluster.starts()) == 2)
        running.extend(psutil.Process(pid) for pids in cluster.starts().values() for pid in pids)
        assert cluster.starts().keys() == {"0-of-2", "1-of-2"}
        assert readers.failure() is None

    cluster.read(does("goes on"), meanwhile)
    assert len(running) == 2
    assert not any(process.is_running() for process in running)
    assert [cluster.log(reader) for reader in (0, 1)] == ["has begun\n"] * 2


@pytest.mark.slow
def test_a_reader_may_end_by_itself(cluster: Cluster) -> None:
    def meanwhile(readers: Readers) -> None:
        until(lambda: cluster.log(0) and cluster.log(1))
        assert [len(pids) for pids in cluster.starts().values()] == [1, 1]

    cluster.read(does("ends"), meanwhile)


@pytest.mark.slow
def test_readers_end_with_the_ranks_also_where_nobody_is_left_to_ask_them(cluster: Cluster) -> None:
    def meanwhile(readers: Readers) -> None:
        until(lambda: len(cluster.starts()) == 2)
        node = next(node for node in nodes_of_fleets.nodes(cluster.fleet.deployment) if node.role == "train")
        script = cluster.run.train([node], 0, 1, TrainConfig(data=Path("d"), output=Path("o")))
        NodeCommand(cluster.fleet.session, node.instance_id, script)  # it fails, as there is no dataset
        until(lambda: cluster.log(0) and cluster.log(1))
        assert readers.failure() is None

    cluster.read(does("goes on"), meanwhile)


@pytest.mark.slow
def test_a_reader_that_is_killed_is_started_again(cluster: Cluster) -> None:
    def meanwhile(readers: Readers) -> None:
        until(lambda: len(cluster.starts()) == 2)
        for already in (1, 2):
            psutil.Process(cluster.starts()["1-of-2"][-1]).kill()
            until(lambda: len(cluster.starts()["1-of-2"]) > already)  # noqa: B023
        assert readers.failure() is None
        assert {name: len(pids) for name, pids in cluster.starts().items()} == {"0-of-2": 1, "1-of-2": 3}

    cluster.read(does("goes on"), meanwhile)
    again = "reader 1 ended with status 137, and is started again\n"
    assert cluster.log(1) == f"has begun\n{again}has begun\n{again}has begun\n"


@pytest.mark.slow
def test_a_reader_that_fails_whenever_it_starts_is_given_up_and_ends_the_others(cluster: Cluster) -> None:
    failures: list[str | None] = []
    others: list[int] = []

    def meanwhile(readers: Readers) -> None:
        until(readers.failure)
        failures.append(readers.failure())
        others.extend(cluster.starts()["0-of-2"])
        assert len(cluster.starts()["1-of-2"]) == 1 + node_scripts._READER_RESTARTS

    with pytest.raises(ShoalError) as caught:
        cluster.read(does("fails", only=1), meanwhile)
    assert [str(caught.value)] == failures
    assert " died again and again: its source is not there; all of it: s3://" in str(caught.value)
    assert "reader-1.log; type the same command with --resume" in str(caught.value)
    assert len(others) == 1
    until(lambda: not psutil.pid_exists(others[0]))


@pytest.mark.slow
def test_a_node_of_a_reader_that_is_gone_is_noticed(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes_of_fleets, "_LOOK_SECONDS", 0.1)
    monkeypatch.setattr(readers_module, "_ONLINE_SECONDS", 0.1)

    def meanwhile(readers: Readers) -> None:
        gone = next(node for node in nodes_of_fleets.nodes(cluster.fleet.deployment) if node.role == "read")
        boto3.client("ec2").terminate_instances(InstanceIds=[gone.instance_id])
        until(readers.failure)

    with pytest.raises(ShoalError, match=r"^the node i-\w+ \(read\) is gone, and the reader with it; type the same"):
        cluster.read(does("goes on"), meanwhile)


@pytest.mark.slow
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ShoalError("the ranks failed")])
def test_whatever_ends_a_training_ends_its_readers(cluster: Cluster, error: BaseException) -> None:
    running: list[int] = []

    def meanwhile(readers: Readers) -> None:
        until(lambda: len(cluster.starts()) == 2)
        running.extend(pid for pids in cluster.starts().values() for pid in pids)
        raise error

    with pytest.raises(type(error)):
        cluster.read(does("goes on"), meanwhile)
    until(lambda: not any(map(psutil.pid_exists, running)))


def test_readers_are_counted_whether_they_run_or_not(aws: EmbeddedAws) -> None:
    alone = Fleet().add("train", "g4dn.xlarge", 1)
    assert count_readers(alone.deployment) == 0
    assert count_readers(alone.add("read", "m5.xlarge", 3, role="read").deployment) == 3


def test_what_readers_tell_is_added_up_and_what_others_wrote_there_does_not_count(aws: EmbeddedAws) -> None:
    s3, run = boto3.Session().client("s3"), f"told-{time.time_ns()}"
    assert reading_now(s3, BUCKET, run) is None

    def tell(number: int, text: str, *, of: str = "20260102T030405-0a1b") -> None:
        s3.put_object(Bucket=BUCKET, Key=f"runs/{run}.{of}/reader-{number}.json", Body=text.encode())

    tell(0, json.dumps({"words": 1_000, "lines": 7}), of="20250102T030405-0a1b")
    time.sleep(1.1)  # times of objects are whole seconds
    tell(0, json.dumps({"words": 100, "lines": 10, "malformed": 1, "waiting_seconds": 2.5}))
    tell(1, json.dumps({"words": 20, "lines": 1, "paused_seconds": 4.0}))
    tell(2, '{"words": "many"}')
    found = reading_now(s3, BUCKET, run)
    assert found == Status(words=120, lines=11, malformed=1, waiting_seconds=2.5, paused_seconds=4.0)
    assert describe_reading(found) == (
        "120 words in 11 lines, 1 malformed; waited 2 s for the sources, and 4 s for the ranks"
    )


def test_no_argument_of_a_reader_is_executed(tmp_path: Path) -> None:
    run = TrainingRun(
        name="x.20260102T030405-0a1b", dataset="0123456789ab", bucket=BUCKET, region="us-east-1", share="nfs"
    )
    script = run.read(0, ["-c", "pass", STREAM, "$(touch x); 'y'"], "0a1b2c3d")
    assert "shoal-python -c pass \"$stream\" '$(touch x); '\"'\"'y'\"'\"''" in script
