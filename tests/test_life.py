"""A small life in this process: a stack is created from its template, one node preprocesses texts and trains on them,
and `shoal destroy` leaves nothing. The demo has the same life with the command `cdk`, a cluster and installations."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from shoal_local_aws.aws import EmbeddedAws
from tests.local_aws.accounts import refused

from shoal.demo.reviews import write_reviews
from shoal.deployments.removal.inventory import inventory, left_over
from tests.fleet import boot_agent
from tests.infra.assemblies import deploy
from tests.shoal.cli.command import shoal_here


@pytest.fixture
def deployed(aws: EmbeddedAws, tmp_path: Path) -> Iterator[str]:
    """The shipped topology of one node. Its boot installs nothing: the agent runs from this checkout."""
    before = deploy("one-node", "life", tmp_path, {"bootstrap/gpu/boot.sh": boot_agent('"$DATA_BUCKET"')})
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
