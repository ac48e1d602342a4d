"""Fixtures: a bucket with a dataset for nodes of the embedded AWS, two nodes, and launches on them."""

from dataclasses import replace

import boto3
import pytest

from corpus.reading.s3 import place_of
from shoal.aws import fleet
from shoal.backends.nodes import NodesBackend
from tests.fleet import BUCKET, Fleet
from tests.shoal.backends.launches import DATASET as LAUNCHED
from tests.shoal.backends.launches import GROUP, NUMBERS, agree, claim, new_launch
from tests.shoal.backends.on_nodes import DATASET, made_dataset


@pytest.fixture(scope="module")
def node_bucket(aws):
    """Create a bucket with a dataset."""
    s3 = boto3.Session().client("s3")
    s3.create_bucket(Bucket=BUCKET)
    s3.upload_file(str(made_dataset(aws.folder / "dataset.h5")), BUCKET, place_of(DATASET).key)


@pytest.fixture(scope="module")
def nodes(aws):
    """Return two nodes without agents."""
    boto3.client("s3").create_bucket(Bucket=BUCKET)
    pair = Fleet(share="nfs").add("pair", "g5.xlarge", 2, start="deploy")
    return pair.scaled_up()


@pytest.fixture
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

    def start(data=LAUNCHED, *, agreed=True):
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


@pytest.fixture
def scaled(monkeypatch):
    """Groups that were scaled to zero."""
    found = []
    monkeypatch.setattr(fleet, "scale_to_zero", lambda _, groups, **__: found.extend(groups))
    return found
