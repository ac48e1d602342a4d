"""fastText from raw texts in S3 to answers elsewhere, by the commands: deploy, train, export, predict, destroy."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import pytest

from bootstrap.aws import cdk
from bootstrap.removal.inventory import inventory, left_over
from embedded.aws import ACCOUNT, REGION, EmbeddedAws
from tests.aws import refused
from tests.person import ROOT, Person, install_from_this_machine
from tests.waiting import PATIENCE

pytestmark = pytest.mark.end_to_end

BUCKET, FOLDER = "my-reviews", "s3://my-reviews/yelp"
COMMAND = ("train", "--deployment", "fasttext", "--model", "fasttext")
ASKED = ("--input", f"{FOLDER}/train.txt", "--test-input", f"{FOLDER}/test.txt")
GOOD, BAD = ("good", "fine", "kind"), ("bad", "poor", "rude")
EITHER = ("the", "room", "was", "and", "staff", "very", "food", ",", "2nd")


def lines(count: int, seed: int) -> bytes:
    """Texts with their labels, as fastText writes them; a word tells which. One line in a hundred has no label."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        label = chance.choice((1, 2))
        words = [*chance.choices(EITHER, k=chance.randint(3, 30)), chance.choice((BAD, GOOD)[label - 1])]
        chance.shuffle(words)
        found.append(f"{'' if number % 100 == 99 else f'__label__{label} '}{' '.join(words)}\n")
    return "".join(found).encode()


@pytest.fixture(scope="module")
def person(aws: EmbeddedAws, tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Whose nodes install from the wheels of this machine: what is deployed has the list of libraries alone."""
    folder = tmp_path_factory.mktemp("life")
    (folder / "repository").mkdir()
    made = Person(aws, folder / "repository")
    install_from_this_machine(made)
    cdk.prepare(account=ACCOUNT, region=REGION, environment={}, log=aws.folder / "cdk.log")
    s3 = boto3.client("s3")
    for bucket in (BUCKET, "my-models"):
        s3.create_bucket(Bucket=bucket)
    for name, count in (("train.txt", 400), ("test.txt", 100)):
        s3.put_object(Bucket=BUCKET, Key=f"yelp/{name}", Body=lines(count, count))
    return made


@pytest.fixture(scope="module")
def deployed(person: Person) -> Iterator[Person]:
    """The shipped topology, in which this person has activated the example of inputs. Afterwards nothing is left."""
    before = inventory()
    shipped = (ROOT / "topologies" / "fasttext.yaml").read_text()
    assert shipped.count(f"# inputs: [{FOLDER}/]") == 1
    person.writes("fasttext", shipped.replace("# inputs:", "inputs:"))
    cdk.run(
        ["deploy", "-c", "topology=fasttext", "--require-approval", "never"],
        environment={},
        assembly=person.aws.folder / "assembly",
        log=person.aws.folder / "cdk.log",
        root=person.repository,
    )
    yield person
    assert "nothing that costs money is left" in person.types("destroy", "fasttext", "--yes")[0]
    assert left_over(before, inventory()) == {}
    assert refused(person.aws) == set()


def trains(person: Person, *arguments: str, output: Path, status: int = 0) -> tuple[str, str]:
    return person.types(*COMMAND, "--output", str(output), "--json", *arguments, status=status)


def keys(bucket: str, prefix: str) -> list[str]:
    found = boto3.client("s3").list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", ())
    return [each["Key"] for each in found]


def groups() -> list[int]:
    return [
        each["DesiredCapacity"]
        for each in boto3.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    ]


def answers(model: str, folder: Path) -> list[str]:
    """The labels that a model in S3 gives a good text and a bad one, asked from an empty folder."""
    code = "import sys; from bootstrap.cli.main import main; sys.exit(main())"
    said = subprocess.run(
        [sys.executable, "-c", code, "predict", "--model", model],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input="the food was good\nthe staff was rude\n",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert list(folder.iterdir()) == []
    return [line.partition("\t")[0] for line in said.splitlines()]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--input", "s3://my-models/x"), "may not read s3://my-models/x; add s3://my-models/x to `inputs`"),
        (("--input", f"{FOLDER}/none.txt"), f"there is nothing at {FOLDER}/none.txt"),
        (("--input", f"{FOLDER}/train.txt", "--test-input", __file__), "copy all of it to one of them"),
    ],
)
def test_what_is_wrong_with_the_input_is_said_before_any_node_is_started(
    deployed: Person, tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    assert sentence in trains(deployed, *arguments, output=tmp_path, status=1)[1]
    assert boto3.client("ec2").describe_instances()["Reservations"] == []


@pytest.mark.soak
def test_ctrl_c_while_a_node_reads_ends_the_node(deployed: Person, tmp_path: Path) -> None:
    bucket = deployed.stack_outputs("fasttext")["DataBucket"]
    before = set(keys(bucket, "nodes/"))
    running = deployed.starts(*COMMAND, "--output", str(tmp_path), *ASKED)
    until = time.monotonic() + PATIENCE
    while not any(key.endswith(".run") for key in {*keys(bucket, "nodes/")} - before):  # the agent has begun
        assert running.poll() is None
        assert time.monotonic() < until
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=PATIENCE)
    assert running.returncode == 130, told
    assert "Traceback" not in told
    assert groups() == [0]
    left = {key.split("/")[2] for key in keys(bucket, "runs/")}
    assert left <= {"request.json", "attempts", "ended.json"}  # nothing to resume


class Trained(NamedTuple):
    """A training on texts in S3: its folder, its summary, and what the command said meanwhile."""

    output: Path
    summary: dict[str, Any]
    told: str


@pytest.fixture(scope="module")
def trained(deployed: Person, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    output = tmp_path_factory.mktemp("trained")
    said, told = trains(deployed, *ASKED, output=output)
    return Trained(output, json.loads(said), told)


@pytest.mark.soak
def test_texts_in_s3_become_a_model_in_s3_that_answers_elsewhere(trained: Trained, tmp_path: Path) -> None:
    assert trained.summary["accuracy"] > 0.95
    assert trained.summary["inputs"] == [f"{FOLDER}/train.txt", f"{FOLDER}/test.txt"]
    assert trained.summary["refused"] == []
    assert "5 of 500 lines are malformed, and are left out" in trained.told
    request = json.loads((trained.output / "request.json").read_text())
    assert [source["address"] for source in request["texts"]["sources"]] == trained.summary["inputs"]
    assert groups() == [0]
    assert answers(trained.summary["run"], tmp_path) == ["positive", "negative"]


@pytest.mark.soak
def test_the_model_is_exported_to_a_bucket_that_outlives_the_deployment(
    deployed: Person, trained: Trained, tmp_path: Path
) -> None:
    deployed.types("export", "--model", str(trained.output), "--output", "s3://my-models/yelp")
    assert answers("s3://my-models/yelp", tmp_path) == ["positive", "negative"]
