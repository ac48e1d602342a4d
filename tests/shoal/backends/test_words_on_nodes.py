"""Tests of word embeddings on nodes of the embedded AWS: refusals, prices and resumed runs."""

import re
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import boto3
import pytest

from common import names
from common.errors import DataError, ShoalError
from common.progress import reporting
from corpus.stream.stream_settings import StreamSettings
from shoal.backends.deployment_data import NodeData
from shoal.runs.sources.stream import PreparedStream, StreamSource
from tests.bootstrap.node.world import STREAM, request
from tests.fleet import BUCKET, Fleet
from tests.trained import predicted_on, train_on
from trainer.config import configured

TEXTS, NEWS = "my-texts", "s3://my-texts/news/"
SETTINGS = StreamSettings(sources=(NEWS,), readers=2, follow=True, part_rows=128, quiet_seconds=2.0)


@pytest.fixture(scope="module", autouse=True)
def buckets(aws):
    for bucket in (BUCKET, TEXTS):
        boto3.client("s3").create_bucket(Bucket=bucket)


@pytest.fixture
def deployed(aws, messages):
    """Function that returns nodes and their deployment, which reads these inputs."""

    def make(nodes=1):
        fleet = Fleet().add("train", "g4dn.xlarge", nodes)
        messages.hide(fleet.name, "FLEET")
        outputs = {**fleet.deployment.outputs, names.OUTPUT_INPUTS: f"{NEWS} s3://gone/news/"}
        return fleet, replace(fleet.deployment, outputs=outputs)

    return make


def configuration(output, **more):
    return configured({"data": Path("stream"), "model": "skipgram", "output": output, **more})


SOURCES = ("/my/books", "s3://other/x", "s3://my-texts/news/none", "s3://gone/news/")


@pytest.mark.parametrize("source", SOURCES)
def test_text_that_nodes_cannot_read_is_refused(deployed, source, messages):
    _, deployment = deployed()
    stream = StreamSource(replace(SETTINGS, sources=(source,), follow="gone" in source))
    with messages.raises((DataError, ShoalError)):
        stream.settings_for(NodeData(deployment))


def test_nodes_without_a_share_are_refused(deployed, messages):
    _, deployment = deployed(nodes=2)
    with messages.raises(ShoalError):
        StreamSource(SETTINGS).settings_for(NodeData(deployment))


def test_an_unreadable_word_set_is_refused_before_nodes_start(deployed, tmp_path, messages):
    fleet, deployment = deployed()
    config = configuration(tmp_path / "out", similarity=("s3://sets-of-others/pairs.txt",))
    with messages.raises(ShoalError):
        train_on(deployment, config, SETTINGS)
    assert fleet.scaling.describe_scaling_activities(AutoScalingGroupName=f"{fleet.name}-train")["Activities"] == []


def test_the_hourly_price_of_nodes_and_readers_is_noted_for_a_stream(aws, tmp_path):
    alone, both = (Fleet(share="nfs").add("train", "g4dn.xlarge", 1) for _ in range(2))
    shown, files = Mock(), {"data": Path("stream"), "output": tmp_path}
    config = configured({**files, "model": "skipgram"}, endless=SETTINGS.follow)
    with reporting(shown):
        for deployment in (both.add("read", "m5.xlarge", 2, role="read").deployment, alone.deployment):
            assert predicted_on(deployment, config, PreparedStream(SETTINGS)) is None
    hourly, less = map(float, re.findall(r"cost \$(\S+) per hour", str(shown.note.mock_calls)))
    assert hourly > less + 2 * 0.15


def test_a_run_on_a_stream_is_resumed_with_its_settings_and_number_of_readers(messages):
    before = request(readers=1)
    assert PreparedStream(replace(STREAM, readers=5)).resumed(before).readers == STREAM.readers
    with messages.raises(ShoalError):
        PreparedStream(replace(STREAM, tokeniser="spaces")).resumed(before)
    with messages.raises(ShoalError):
        PreparedStream(STREAM).resumed(request())
