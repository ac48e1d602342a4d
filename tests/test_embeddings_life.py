"""Word embeddings of a growing S3 prefix are trained by commands: deploy, train, evaluate, destroy."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
import pytest
from shoal_local_aws.aws import EmbeddedAws

from shoal.deployments.removal.inventory import inventory, left_over
from tests.command_user import ROOT, CommandUser, replace
from tests.fleet import boot_agent
from tests.trainer.embeddings import made_text
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

BUCKET, NEWS = "my-texts", "s3://my-texts/news/"
TRAIN = ("embed", "--deployment", "words", "--follow", "--input", NEWS)
LEARNING = (
    "--words", "1500000", "--vocabulary-words", "200000", "--embedding", "16", "--subsample", "0", "--threads", "1",
    "--learning-rate", "0.4",
)  # fmt: skip


@pytest.fixture(scope="module")
def user(aws: EmbeddedAws, tmp_path_factory: pytest.TempPathFactory) -> CommandUser:
    """Return a user with nodes that install nothing: their agents run from this checkout."""
    made = CommandUser.prepared(aws, tmp_path_factory.mktemp("life"))
    replace(made.repository, "bootstrap/gpu/boot.sh", boot_agent('"$DATA_BUCKET"'))
    boto3.client("s3").create_bucket(Bucket=BUCKET)
    return made


@pytest.fixture(scope="module")
def deployed(user: CommandUser) -> Iterator[CommandUser]:
    """Deploy the shipped topology with two of its four GPU nodes and its example inputs. Afterwards nothing is left."""
    before = inventory()
    shipped = (ROOT / "topologies" / "embeddings-4x1gpu-2readers.yaml").read_text()
    assert shipped.count(f"# inputs: [{NEWS}]") == shipped.count("count: 4") == 1
    user.write_topology("words", shipped.replace("# inputs:", "inputs:").replace("count: 4", "count: 2"))
    user.cdk_deploy("words")
    yield user
    assert "nothing that costs money is left" in user.run("destroy", "words", "--yes")[0]
    assert left_over(before, inventory()) == {}


@contextmanager
def growing() -> Iterator[None]:
    """Add objects of a million words each during the test."""
    s3, done = boto3.client("s3"), threading.Event()
    text = ("\n".join(made_text.lines(2_000)) + "\n").encode() * 42

    def add() -> None:
        number = 0
        while not done.is_set():
            s3.put_object(Bucket=BUCKET, Key=f"news/{number:04}.txt", Body=text)
            number += 1
            done.wait(1.0)

    adding = threading.Thread(target=add)
    adding.start()
    try:
        yield
    finally:
        done.set()
        adding.join()


def test_words_of_a_growing_prefix_become_remotely_evaluated_vectors(deployed: CommandUser, tmp_path: Path) -> None:
    pairs = made_text.pairs(tmp_path / "topics.txt")
    output = tmp_path / "out"
    with growing():
        running = deployed.start(*TRAIN, *LEARNING, "--similarity", str(pairs), "--output", str(output), "--json")
        stdout, stderr = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, stderr
    trained = json.loads(stdout)
    assert trained["world_size"] == 2
    assert [len(trained[name]) for name in ("nodes", "readers")] == [2, 2]
    assert trained["read"]["words"] > 0
    assert trained["similarity_topics"] > 0.5
    assert trained["refused"] == []
    groups = boto3.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    assert [each["DesiredCapacity"] for each in groups] == [0, 0]
    for model in (str(output), trained["run"], f"{trained['run']}model"):
        judged = json.loads(deployed.run("evaluate", "--model", model, "--similarity", str(pairs), "--json")[0])
        assert judged["similarity"][str(pairs)]["spearman"] == pytest.approx(trained["similarity_topics"], abs=1e-6)
    near = json.loads(deployed.run("neighbours", "--model", trained["run"], "seaa", "--count", "3", "--json")[0])
    assert {each["word"][:3] for each in near["neighbours"]["seaa"]} == {"sea"}
