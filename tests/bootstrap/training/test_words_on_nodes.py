"""Tests of word embeddings on nodes of the embedded AWS: refusals, prices and resumed runs."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from bootstrap.aws.deployment import Deployment
from bootstrap.progress import Bars
from bootstrap.training.places.deployment import DeploymentPlace
from bootstrap.training.sources.stream import PreparedStream, StreamSource
from common.errors import DataError, ShoalError
from corpus.stream.stream_settings import StreamSettings
from infra import topology
from tests.bootstrap.agent.world import STREAM, request
from tests.fleet import BUCKET, Fleet
from tests.trained import predicted_on, train_on
from trainer.config import TrainConfig, configured

TEXTS, NEWS = "my-texts", "s3://my-texts/news/"
SETTINGS = StreamSettings(sources=(NEWS,), readers=2, follow=True, part_rows=128, quiet_seconds=2.0)


@pytest.fixture(scope="module", autouse=True)
def buckets(aws) -> None:
    for bucket in (BUCKET, TEXTS):
        boto3.client("s3").create_bucket(Bucket=bucket)


def deployed(fleet: Fleet, *, inputs: str = NEWS) -> Deployment:
    return replace(fleet.deployment, outputs={**fleet.deployment.outputs, topology.OUTPUT_INPUTS: inputs})


def configuration(output: Path, **more: Any) -> TrainConfig:
    return configured({"data": Path("stream"), "model": "skipgram", "output": output, **more})


REFUSED = {
    "a path": ({"sources": ("/my/books",)}, r"/my/books is on this machine, but the nodes .* upload it, for example"),
    "no input of the topology": (
        {"sources": ("s3://other/x",)},
        r"cannot read s3://other/x; add s3://other/x to `inputs` of its topology",
    ),
    "nothing there": (
        {"sources": ("s3://my-texts/news/none",), "follow": False},
        r"there are no files at s3://my-texts/news/none; check the address, or wait for files",
    ),
    "no bucket": ({"sources": ("s3://gone/news/",)}, r"there is no bucket gone; check the address"),
}


@pytest.mark.parametrize(("changes", "sentence"), REFUSED.values(), ids=REFUSED)
def test_text_that_nodes_cannot_read_is_refused(aws, changes, sentence):
    deployment = deployed(Fleet().add("train", "g4dn.xlarge", 1), inputs=f"{NEWS} s3://gone/news/")
    with pytest.raises((DataError, ShoalError), match=sentence):
        StreamSource(replace(SETTINGS, **changes)).settings_for(DeploymentPlace(deployment))


def test_nodes_without_a_share_are_refused(aws):
    with pytest.raises(ShoalError, match=r"the 2 nodes of .* need a shared file system for the parts of the stream"):
        StreamSource(SETTINGS).settings_for(DeploymentPlace(deployed(Fleet().add("train", "g4dn.xlarge", 2))))


def test_an_unreadable_word_set_is_refused_before_nodes_start(aws, tmp_path):
    fleet = Fleet().add("train", "g4dn.xlarge", 1)
    config = configuration(tmp_path / "out", similarity=("s3://sets-of-others/pairs.txt",))
    with pytest.raises(ShoalError, match="cannot read s3://sets-of-others/pairs"), Bars() as bars:
        train_on(deployed(fleet), config, SETTINGS, bars)
    assert fleet.scaling.describe_scaling_activities(AutoScalingGroupName=f"{fleet.name}-train")["Activities"] == []


def test_the_hourly_price_of_nodes_and_readers_is_noted_for_a_stream(aws, tmp_path, monkeypatch):
    alone, both = (Fleet(share="nfs").add("train", "g4dn.xlarge", 1) for _ in range(2))
    bars, notes = Bars(), list[str]()
    monkeypatch.setattr(bars, "note", notes.append)
    for deployment in (both.add("read", "m5.xlarge", 2, role="read").deployment, alone.deployment):
        assert predicted_on(deployment, configuration(tmp_path), PreparedStream(SETTINGS), bars) is None
    assert "the speed of GPUs with --model skipgram is unknown; its nodes cost $" in notes[0]
    said = re.findall(r"its nodes cost \$(\S+) per hour", str(notes))
    hourly, less = map(float, said)
    assert hourly > less + 2 * 0.15


def test_a_run_on_a_stream_is_resumed_with_its_settings_and_number_of_readers():
    before = request(readers=1)
    assert PreparedStream(replace(STREAM, readers=5)).resumed(lambda: before).readers == STREAM.readers
    with pytest.raises(ShoalError, match=r"has tokeniser punctuation, not spaces; resume with the options"):
        PreparedStream(replace(STREAM, tokeniser="spaces")).resumed(lambda: before)
    with pytest.raises(ShoalError, match="the run to resume was not trained on a stream"):
        PreparedStream(STREAM).resumed(request)
