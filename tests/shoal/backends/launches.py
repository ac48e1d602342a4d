"""Launches on nodes of the embedded AWS. Tests write the documents of the nodes."""

import itertools
from pathlib import Path

import boto3

from bootstrap.node.documents import RequestDocument
from bootstrap.node.node_documents import Attempt, Member, NodeStatus, RunEnd
from common import names
from corpus.reading.s3 import S3Path, read_text
from shoal.aws.fleet import GpuGroup
from shoal.backends.nodes import NodesBackend
from shoal.runs.run import Run
from shoal.runs.sources.dataset import PreparedDataset
from tests.fleet import BUCKET
from trainer.config import configured

DATASET = PreparedDataset(f"s3://{BUCKET}/datasets/{1:032x}/dataset.h5")
CONFIG = configured({"model": "lstm", "data": Path("dataset"), "output": Path("output"), "epochs": 3, "slow": {1: 2.0}})
OTHER = CONFIG.changed(epochs=4)
NUMBERS = itertools.count()
GROUP = GpuGroup(name="pair", scaling_group="demo", size=2, desired=2, gpus=1, spot=False, stays=False)


def new_launch(deployment, suffix):
    """Return the launch of a run on the deployment's nodes, with its backend."""
    backend = NodesBackend(deployment)
    backend._launch = backend.new_launch(f"{deployment.name}.20260102T030405-{suffix}")
    backend._launch.backend = backend
    return backend._launch


def claim(launch, data=DATASET, config=CONFIG):
    launch.claim(Run.of_config(config, data), trainers=2, readers=0, share="nfs")


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


def end(launch, outcome="finished", error=""):
    put(launch.request.end_key, RunEnd(token=launch.request.token, outcome=outcome, error=error).to_json())
    assert launch.end()
