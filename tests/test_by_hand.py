"""A person's own commands against `shoal embedded`, on the reference's mixed cluster of four nodes."""

import json
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import boto3
import pytest

from bootstrap.demo.reviews import write_reviews
from bootstrap.removal.inventory import left_over
from tests.processes import MARK, left_behind
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

ROOT = Path(__file__).parents[1]
TOPOLOGY = ("-c", "topology=reference-3g3-1p2", "-c", "deployment=mine")


class Shell:
    """Another shell, into which the printed lines were pasted."""

    def __init__(self, lines: list[str], folder: Path) -> None:
        pairs = [shlex.split(line.removeprefix("export "))[0].partition("=") for line in lines]
        self.environment = {**os.environ, **{name: value for name, _, value in pairs}}
        self.folder = folder

    def __call__(self, *command: str | Path, status: int = 0, given: str | None = None) -> str:
        done = subprocess.run(
            list(map(os.fspath, command)),
            env=self.environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            input=given,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout if status == 0 and command[0] != "cdk" else done.stdout + done.stderr

    def interrupted(self, *command: str | Path) -> str:
        """Ctrl-C once the run has taken its first steps."""
        before = self.steps_recorded()
        running = subprocess.Popen(
            list(map(os.fspath, command)), env=self.environment, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        deadline = time.monotonic() + PATIENCE
        while self.steps_recorded() == before:
            assert time.monotonic() < deadline
            time.sleep(0.5)
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=PATIENCE)
        assert running.returncode == 130
        return said

    def client(self, service: str):
        return boto3.client(
            service,
            endpoint_url=self.environment["AWS_ENDPOINT_URL"],
            region_name="us-east-1",
            aws_access_key_id=self.environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.environment["AWS_SECRET_ACCESS_KEY"],
        )

    def steps_recorded(self) -> int:
        """Lines about steps in all records of the deployment's data bucket."""
        s3 = self.client("s3")
        records = [
            s3.get_object(Bucket=bucket["Name"], Key=found["Key"])["Body"].read()
            for bucket in s3.list_buckets()["Buckets"]
            for found in s3.list_objects_v2(Bucket=bucket["Name"], Prefix="runs/").get("Contents", ())
            if found["Key"].endswith("record.jsonl")
        ]
        return sum(record.count(b'"kind": "step"') for record in records)

    def desired_nodes(self) -> list[int]:
        groups = self.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
        return [group["DesiredCapacity"] for group in groups]

    def cdk(self, *arguments: str) -> str:
        return self("cdk", *arguments, *TOPOLOGY, "--output", self.folder / "assembly")

    def inventory(self) -> dict[str, set[str]]:
        code = (
            "import json; from bootstrap.removal.inventory import inventory;"
            "print(json.dumps({kind: sorted(found) for kind, found in inventory().items()}))"
        )
        return {kind: set(found) for kind, found in json.loads(self("python", "-c", code)).items()}


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp("by-hand")
    temporary = folder / uuid4().hex
    temporary.mkdir()
    emulator = subprocess.Popen(
        ["shoal", "embedded"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, MARK: os.fspath(temporary)},
    )
    assert emulator.stderr is not None
    assert emulator.stdout is not None
    for line in emulator.stderr:
        if line.startswith("ready"):
            break
    lines = []
    while not lines or not lines[-1].startswith("export PATH="):
        lines.append(emulator.stdout.readline())
    yield Shell(lines, folder)
    emulator.send_signal(signal.SIGINT)
    emulator.communicate(timeout=PATIENCE)
    assert emulator.returncode == 0
    assert left_behind(os.fspath(temporary)) == []


@pytest.fixture(scope="module")
def deployed(shell: Shell) -> Iterator[Shell]:
    before = shell.inventory()
    shell.cdk("deploy", "--require-approval", "never")
    yield shell
    shell.cdk("destroy", "--force")
    assert left_over(before, shell.inventory()) == {}


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reviews") / "reviews, of [odd] name.json"
    write_reviews(path, texts=3_000)
    return path


def test_a_second_deployment_changes_nothing(deployed: Shell) -> None:
    created = deployed.inventory()
    assert "no changes" in deployed.cdk("deploy", "--require-approval", "never")
    assert deployed.inventory() == created


def test_the_cluster_makes_the_dataset_that_one_machine_makes(deployed: Shell, reviews: Path, tmp_path: Path) -> None:
    said = json.loads(deployed("shoal", "preprocess", "--deployment", "mine", "--input", reviews, "--json"))
    here = json.loads(deployed("shoal", "preprocess", "--local", "--input", reviews, "--output", tmp_path, "--json"))
    assert said["digest"] == here["digest"]
    assert f"datasets/{said['digest']}/dataset.h5" in said["dataset"]


def test_four_nodes_of_two_kinds_train_stop_and_go_on(deployed: Shell, tmp_path: Path) -> None:
    where = ("--deployment", "mine", "--output", tmp_path, "--json", "--model", "lstm", "--word-dropout", "0")
    command = ("shoal", "train", *where, "--epochs")
    summary = json.loads(deployed(*command, "12", "--slow", "3:1.8"))
    assert summary["world_size"] == 4
    assert [node["instance_type"] for node in summary["nodes"]] == [*["g3.4xlarge"] * 3, "p2.xlarge"]
    assert summary["rows_of_ranks"][3] == min(summary["rows_of_ranks"])
    assert summary["accuracy"] > summary["majority"]

    said = deployed("shoal", "predict", "--model", summary["run"], given="The screen is good and sharp.\n")
    assert re.fullmatch(r"(positive|negative)\t[01]\.\d{4}\tThe screen is good and sharp\.\n", said)

    assert json.loads(deployed.interrupted(*command, "40", "--force"))["stopped"] is True
    assert deployed.desired_nodes() == [0, 0]
    resumed = json.loads(deployed(*command, "40", "--resume"))
    assert (resumed["stopped"], resumed["rows_seen"]) == (False, 40 * resumed["rows"])
