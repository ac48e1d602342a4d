"""Word embeddings on nodes of the embedded AWS: text that keeps coming, who reads it, stops, and what is refused."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from bootstrap.aws.deployment import Deployment
from bootstrap.nodes import scale_up
from bootstrap.progress import Bars
from bootstrap.training.places.deployment import OnDeployment
from bootstrap.training.sources.stream import PreparedStream, StreamSource
from common.errors import DataError, ShoalError
from corpus.stream.stream_settings import StreamSettings
from embedded.aws import EmbeddedAws
from infra import topology
from tests.fleet import BUCKET, Fleet, boot_agent
from tests.trained import predicted_on, train_on
from tests.trainer.embeddings import made_text
from trainer.config import TrainConfig, configured
from trainer.embeddings.vectors import open_vectors

TEXTS, NEWS = "my-texts", "s3://my-texts/news/"
BOOT = boot_agent()
SETTINGS = StreamSettings(sources=(NEWS,), readers=2, follow=True, part_rows=128, quiet_seconds=2.0)
LEARNING: dict[str, Any] = {
    "model": "skipgram",
    "embedding": 16,
    "global_batch": 4,
    "learning_rate": 1.6,
    "schedule": "constant",
    "subsample": 0.0,
    "min_count": 1,
    "threads": 1,
    "vocabulary_words": 16_000,
    "data": Path("stream"),
}


@pytest.fixture(scope="module", autouse=True)
def buckets(aws: EmbeddedAws) -> None:
    for bucket in (BUCKET, TEXTS):
        boto3.client("s3").create_bucket(Bucket=bucket)


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale_up, "_PAUSE_SECONDS", 0.1)


def deployed(fleet: Fleet, *, inputs: str = NEWS) -> Deployment:
    return replace(fleet.deployment, outputs={**fleet.deployment.outputs, topology.OUTPUT_INPUTS: inputs})


@pytest.fixture
def with_readers(aws: EmbeddedAws) -> Iterator[Fleet]:
    made = (
        Fleet(share="nfs").add("train", "g4dn.xlarge", 1, boot=BOOT).add("read", "m5.xlarge", 2, role="read", boot=BOOT)
    )
    yield made
    assert set(made.desired().values()) == {0}


def configuration(output: Path, **more: Any) -> TrainConfig:
    return configured({**LEARNING, "output": output, **more})


@contextmanager
def growing() -> Iterator[None]:
    """A prefix to which objects are added, meanwhile."""
    s3, done = boto3.client("s3"), threading.Event()

    def add() -> None:
        number = 0
        while not done.is_set():
            text = "\n".join(made_text.lines(1500, number)) + "\n"
            s3.put_object(Bucket=TEXTS, Key=f"news/{number:04}.txt", Body=text.encode())
            number += 1
            done.wait(0.2)

    adding = threading.Thread(target=add)
    adding.start()
    try:
        yield
    finally:
        done.set()
        adding.join()


def trained(deployment: Deployment, config: TrainConfig, bars: Bars | None = None) -> dict[str, Any]:
    with growing(), bars or Bars() as shown:
        return train_on(deployment, config, SETTINGS, shown)


class Impatient(Bars):
    """Ctrl-C when a figure was shown that is far enough, and the ranks have begun."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._steps, self._begun = steps, False

    def stage(self, name: str, total: int, unit: str | None = None) -> None:
        super().stage(name, total, unit)
        self._begun = name == "train"

    def at(self, done: int) -> None:
        if self._begun and done >= self._steps * LEARNING["global_batch"]:
            self._begun = False
            raise KeyboardInterrupt


@pytest.mark.soak
def test_a_stopped_run_goes_on_in_its_stream_although_that_ended_with_the_nodes(
    with_readers: Fleet, tmp_path: Path
) -> None:
    deployment, output = deployed(with_readers), tmp_path / "out"
    stopped = trained(deployment, configuration(output), Impatient(70))
    assert stopped["stopped"] is True
    assert stopped["stopped_by"] == "SIGINT"
    assert open_vectors(str(output)).words
    resumed = configuration(output, resume=True)
    with pytest.raises(ShoalError, match=r"has tokeniser punctuation, and not spaces; resume with what it was"):
        train_on(deployment, resumed, replace(SETTINGS, tokeniser="spaces"), Bars())
    finished = trained(deployment, resumed, Impatient(140))
    assert finished["run"] == stopped["run"]
    assert finished["rows_seen"] > stopped["rows_seen"]
    starts = [json.loads(line) for line in (output / "record.jsonl").open() if '"kind": "start"' in line]
    assert starts[-1]["from_step"] == stopped["rows_seen"] // LEARNING["global_batch"]


REFUSED = {
    "a path": ({"sources": ("/my/books",)}, r"/my/books is on this machine, and the nodes .* upload it, such as by"),
    "a socket": (
        {"sources": ("tcp://news:9000",)},
        r"cannot reach tcp://news:9000, as their network leads to S3 alone",
    ),
    "no input of the topology": (
        {"sources": ("s3://other/x",)},
        r"may not read s3://other/x; add s3://other/x to `inputs` in the file of its topology",
    ),
    "nothing there": (
        {"sources": ("s3://my-texts/news/none",), "follow": False},
        r"there are no files at s3://my-texts/news/none; check the address, or give --follow",
    ),
    "no bucket": ({"sources": ("s3://gone/news/",)}, r"there is no bucket gone; check the address"),
}


@pytest.mark.parametrize(("changes", "sentence"), REFUSED.values(), ids=REFUSED)
def test_text_that_nodes_cannot_read_is_refused(aws: EmbeddedAws, changes: dict[str, Any], sentence: str) -> None:
    deployment = deployed(Fleet().add("train", "g4dn.xlarge", 1), inputs=f"{NEWS} s3://gone/news/")
    with pytest.raises((DataError, ShoalError), match=sentence):
        StreamSource(replace(SETTINGS, **changes)).settings_for(OnDeployment(deployment))


def test_nodes_without_a_folder_in_common_are_refused(aws: EmbeddedAws) -> None:
    with pytest.raises(ShoalError, match=r"the 2 nodes of .* have no folder in which all of them would find the words"):
        StreamSource(SETTINGS).settings_for(OnDeployment(deployed(Fleet().add("train", "g4dn.xlarge", 2))))


def test_a_set_out_of_the_nodes_reach_is_refused_before_they_start(aws: EmbeddedAws, tmp_path: Path) -> None:
    fleet = Fleet().add("train", "g4dn.xlarge", 1)
    config = configuration(tmp_path / "out", similarity=("s3://sets-of-others/pairs.txt",))
    with pytest.raises(ShoalError, match="may not read s3://sets-of-others/pairs"), Bars() as bars:
        train_on(deployed(fleet), config, SETTINGS, bars)
    assert fleet.scaling.describe_scaling_activities(AutoScalingGroupName=f"{fleet.name}-train")["Activities"] == []


class Noting(Bars):
    """Keeps what was noted."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_of_text_the_price_of_the_nodes_and_readers_by_the_hour_is_noted(with_readers: Fleet, tmp_path: Path) -> None:
    bars, alone = Noting(), Fleet().add("train", "g4dn.xlarge", 1).deployment
    for deployment in (with_readers.deployment, alone):
        assert predicted_on(deployment, configuration(tmp_path), PreparedStream(SETTINGS), bars) is None
    assert "how fast GPUs train --model skipgram is not known; its nodes cost $" in bars.notes[0]
    said = re.findall(r"its nodes cost \$(\S+) an hour", str(bars.notes))
    hourly, less = map(float, said)
    assert hourly > less + 2 * 0.15
