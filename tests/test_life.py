"""A small life in this process: a stack is created from its template, one node preprocesses texts and trains on them,
and `shoal destroy` leaves nothing. The demo has the same life with the command `cdk`, a cluster and installations."""

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from shoal_local_aws.aws import EmbeddedAws
from tests.local_aws.accounts import refused

from bootstrap.demo.reviews import write_reviews
from bootstrap.removal.inventory import inventory, left_over
from infra import topology
from tests.bootstrap.cli.command import shoal_here
from tests.fleet import boot_agent
from tests.infra.conftest import fill, stack_of
from tests.waiting import until

ROOT = Path(__file__).parents[1]


def publish(assembly: Path, stack: str, endpoint: str) -> str:
    """Upload a stack's assets as `cdk deploy` does: a folder becomes a zip file. Return the template's address."""
    address = ""
    s3 = boto3.client("s3")
    for asset in json.loads((assembly / f"{stack}.assets.json").read_text())["files"].values():
        path = assembly / asset["source"]["path"]
        body = io.BytesIO(path.read_bytes() if path.is_file() else b"")
        if path.is_dir():
            with zipfile.ZipFile(body, "w") as archive:
                for file in path.rglob("*.*"):
                    archive.write(file, file.relative_to(path))
        for place in asset["destinations"].values():
            bucket = place["bucketName"].replace("${AWS::AccountId}", "000000000000")
            s3.create_bucket(Bucket=bucket)
            s3.put_object(Bucket=bucket, Key=place["objectKey"], Body=body.getvalue())
            if path.name == f"{stack}.template.json":
                address = f"{endpoint}/{bucket}/{place['objectKey']}"
    return address


@pytest.fixture
def deployed(aws: EmbeddedAws, tmp_path: Path) -> Iterator[str]:
    """The shipped topology of one node. Its boot installs nothing: the agent runs from this checkout."""
    repository, assembly = fill(tmp_path / "repository"), tmp_path / "assembly"
    (repository / "bootstrap" / "nodes" / "gpu" / "boot.sh").write_text(boot_agent('"$DATA_BUCKET"'))
    spec = topology.load("one-node", ROOT / "topologies")
    stack_of(repository, spec, assembly, deployment="life").node.root.synth()  # type: ignore[attr-defined]
    stack = topology.stack_name("life")
    template = publish(assembly, stack, aws.endpoint)
    boto3.client("ssm").put_parameter(Name="/cdk-bootstrap/shoal/version", Value="31", Type="String")
    before = inventory()
    cloudformation = boto3.client("cloudformation")
    cloudformation.create_stack(
        StackName=stack,
        TemplateURL=template,
        Capabilities=["CAPABILITY_IAM"],
        RoleARN="arn:aws:iam::000000000000:role/execution",
    )

    def status() -> str:
        found: str = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"]
        return "" if found.endswith("IN_PROGRESS") else found

    assert until(status) == "CREATE_COMPLETE"
    yield "life"
    done = shoal_here("destroy", "life", "--yes")
    assert done.returncode == 0, done.stderr
    assert "nothing that costs money is left" in done.stdout
    assert left_over(before, inventory()) == {}
    assert refused(aws) == set()


def test_a_node_preprocesses_and_trains_and_nothing_is_left(deployed: str, tmp_path: Path) -> None:
    reviews = tmp_path / "reviews.json"
    write_reviews(reviews, texts=600)
    model = ("--model", "fasttext", "--epochs", "3", "--seed", "3")
    done = shoal_here(
        "train", "--deployment", deployed, "--input", reviews, *model, "--output", tmp_path / "run", "--json"
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["accuracy"] > summary["majority"]
    assert summary["rows_seen"] == 3 * summary["rows"] > 3 * 400
