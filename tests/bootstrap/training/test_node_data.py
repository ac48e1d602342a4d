"""What a training brings to its nodes, what is shown meanwhile, and what ends it; the nodes' Python is a script."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import boto3
import pytest

from bootstrap.errors import ShoalError
from bootstrap.nodes import fleet
from bootstrap.nodes.fleet import GpuNode
from bootstrap.progress import Bars
from bootstrap.training.node_data import bring_data, find_data
from bootstrap.training.node_scripts import TrainingRun
from bootstrap.training.raw_input import RawTexts
from corpus.dataset import open_dataset
from corpus.reading.formats import Format
from corpus.reading.s3 import Place
from corpus.reading.sources import Inputs, Source
from corpus.settings import Settings
from corpus.text_request import TextRequest
from embedded.aws import EmbeddedAws
from tests.fleet import BUCKET, Fleet, report

TEXTS = TextRequest(
    sources=(Source(address="s3://pile/a.txt", size=1, identity="x", format=Format(kind="fasttext")),),
    settings=Settings(ragged=True, labelled=True),
    max_malformed=0.05,
    allow_damaged=False,
    plain_bytes=1_000,
)
RUN = TrainingRun(
    name="fleet.20260102T030405-0a1b", dataset="0123456789ab", bucket=BUCKET, region="us-east-1", share=None
)
# `shoal-python -m corpus.text_request REQUEST OUTPUT PROGRESS` runs a script of the bucket with the last three.
BOOT = f"""\
mkdir -p "$NODE_ROOT/opt/shoal" "$NODE_ROOT/usr/local/bin" "$NODE_ROOT/mnt/share"
touch "$NODE_ROOT/opt/shoal/busy.lock"
cat >"$NODE_ROOT/usr/local/bin/shoal-python" <<'RUN'
#!/bin/bash
aws s3 cp --only-show-errors s3://{BUCKET}/script "$TMPDIR/script" && shift 2 && exec bash "$TMPDIR/script" "$@"
RUN
chmod +x "$NODE_ROOT/usr/local/bin/shoal-python"
{report(state="ready", log="")}
"""
TELL = """printf '{{"read": {read}, "lines": {lines}, "malformed": 3}}' | aws s3 cp - "$3"\n"""


class Watching(Bars):
    """Remembers what was shown; Ctrl-C at a number of bytes."""

    def __init__(self, interrupt_at: int | None = None) -> None:
        super().__init__()
        self._interrupt_at = interrupt_at
        self.stages: list[tuple[str, int]] = []
        self.shown: list[int] = []
        self.notes: list[str] = []

    def stage(self, name: str, total: int, unit: str | None = None) -> None:
        super().stage(name, total, unit)
        self.stages.append((name, total))

    def at(self, done: int) -> None:
        self.shown.append(done)
        if done == self._interrupt_at:
            raise KeyboardInterrupt

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedAws]:
    with EmbeddedAws(tmp_path_factory.mktemp("aws")) as running, pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        boto3.setup_default_session()
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        yield running
    boto3.setup_default_session()


@pytest.fixture(scope="module")
def one(aws: EmbeddedAws) -> Fleet:
    """A node that stays after a training."""
    return Fleet().add("one", "g5.xlarge", 1, start="deploy", boot=BOOT)


@pytest.fixture(scope="module")
def nodes(one: Fleet) -> list[GpuNode]:
    with Bars() as bars:
        return one.scaled_up(bars)


def script(text: str) -> None:
    boto3.client("s3").put_object(Bucket=BUCKET, Key="script", Body=f"set -e\n{text}".encode())


def bring(one: Fleet, nodes: list[GpuNode], name: str, bars: Bars) -> None:
    bring_data(one.deployment, nodes, replace(RUN, dataset=name), TEXTS, bars)


def datasets(aws: EmbeddedAws) -> list[str]:
    return sorted(path.name for path in aws.folder.glob("nodes/*/mnt/share/datasets/*.h5"))


@pytest.mark.slow
def test_a_node_encodes_what_the_request_names_and_its_progress_is_shown(aws, one, nodes) -> None:
    wait = "sleep 1\n"
    copy = 'aws s3 cp --only-show-errors "$1" "$2"\n'
    script(TELL.format(read=400, lines=0) + wait + copy + TELL.format(read=1_000, lines=80))
    with Watching() as bars:
        bring(one, nodes, "00000000000a", bars)
    assert bars.stages == [("read the texts on the nodes", 1_000)]
    assert 400 in bars.shown
    assert bars.notes == ["3 of 80 lines are malformed, and are left out"]
    (made,) = aws.folder.glob("nodes/*/mnt/share/datasets/texts-00000000000a.h5")
    assert TextRequest.from_json(made.read_text()) == TEXTS


@pytest.mark.slow
def test_the_error_of_a_node_is_its_sentence(aws, one, nodes) -> None:
    script("echo s3://pile/a.txt is damaged >&2; exit 1\n")
    with Bars() as bars, pytest.raises(ShoalError) as caught:
        bring(one, nodes, "00000000000b", bars)
    assert str(caught.value) == f"a command failed on the node {nodes[0].instance_id}: s3://pile/a.txt is damaged"


@pytest.mark.slow
def test_progress_that_no_node_writes_is_not_shown(aws, one, nodes) -> None:
    script("""printf '{"read": "-5"}' | aws s3 cp - "$3"; sleep 1; touch "$2"\n""")
    with Watching() as bars:
        bring(one, nodes, "00000000000c", bars)
    assert bars.shown == []
    assert bars.notes == []


@pytest.mark.slow
def test_ctrl_c_ends_the_reading_on_a_node_that_stays(aws, one, nodes) -> None:
    script(TELL.format(read=7, lines=0) + 'while :; do sleep 0.1; done; touch "$2"\n')
    with Watching(interrupt_at=7) as bars, pytest.raises(KeyboardInterrupt):
        bring(one, nodes, "00000000000d", bars)
    ssm = boto3.client("ssm")
    until = time.monotonic() + 60
    while (state := ssm.list_commands()["Commands"][0]["Status"]) in ("Pending", "InProgress"):
        assert time.monotonic() < until
        time.sleep(0.1)
    assert state == "Cancelled"
    assert "texts-00000000000d.h5" not in datasets(aws)


@pytest.mark.slow
def test_a_node_that_is_gone_ends_the_reading(aws, one, nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "_LOOK_SECONDS", 0)
    script(TELL.format(read=8, lines=0) + "while :; do sleep 0.1; done\n")

    class Terminating(Watching):
        def at(self, done: int) -> None:
            if done == 8:
                boto3.client("ec2").terminate_instances(InstanceIds=[nodes[0].instance_id])

    with Terminating() as bars, pytest.raises(ShoalError, match=r"is gone; type the same command again$"):
        bring(one, nodes, "00000000000e", bars)


def test_texts_here_are_encoded_here_and_uploaded(aws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.classification.data.default_cache", lambda: tmp_path / "cache")
    lines = "".join(f"__label__{1 + number % 2} text {number}\n" for number in range(300))
    (tmp_path / "a.txt").write_text(lines)
    texts = RawTexts(
        inputs=Inputs(files=(str(tmp_path / "a.txt"),)), settings=Settings(), max_malformed=0.05, allow_damaged=False
    )
    with Bars() as bars:
        place = find_data(Fleet().deployment, texts, output=tmp_path / "model", bars=bars)
    (made,) = (tmp_path / "cache").glob("texts-*/dataset.h5")
    with open_dataset(made) as opened:
        assert place == Place(BUCKET, f"datasets/{opened.digest}/dataset.h5")
    assert boto3.client("s3").head_object(Bucket=place.bucket, Key=place.key)["ContentLength"] == made.stat().st_size
