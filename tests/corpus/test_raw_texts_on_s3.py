"""Raw texts on an S3 that throttles, cuts connections and changes become the right dataset, or a sentence."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from common.errors import DataError
from corpus.dataset import open_dataset
from corpus.raw_texts import SETTINGS, encode_texts
from corpus.reading import s3
from corpus.reading.inputs.understanding import Understanding, understand_inputs
from corpus.reading.sources import Inputs
from embedded.aws import EmbeddedAws
from embedded.faults.kinds import CutConnection, S3Error, Throttled
from tests.reviews import json_lines

LINES = json_lines(
    *({"text": f"text {n} of many, each of which has some more words", "label": n % 2} for n in range(40_000))
)


@pytest.fixture(scope="module", autouse=True)
def objects(pile: EmbeddedAws) -> None:
    s3.client().put_object(Bucket="pile", Key="texts/1.json", Body=LINES)
    s3.client().put_object(Bucket="pile", Key="texts/2.json.gz", Body=gzip.compress(LINES, 1))


def encode(understanding: Understanding, output: Path, **how: Any) -> str:
    """The digest of the dataset of some files."""
    encode_texts(understanding.sources, understanding.settings(SETTINGS), output, max_malformed=0, **how)
    with open_dataset(output) as dataset:
        return dataset.digest


def understood(address: str) -> Understanding:
    return understand_inputs(Inputs(files=(address,)))


@pytest.fixture(scope="module")
def expected(aws: EmbeddedAws, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of the dataset of the same texts on a disk."""
    folder = tmp_path_factory.mktemp("texts")
    (folder / "1.json").write_bytes(LINES)
    (folder / "2.json").write_bytes(LINES)
    return encode(understood(str(folder)), folder / "out.h5")


def test_cut_connections_and_throttling_change_nothing(aws: EmbeddedAws, expected: str, tmp_path: Path) -> None:
    faults = (CutConnection(share=0.5), Throttled(service="s3", share=0.2), S3Error(share=0.1))
    with aws.faults.during(*faults):
        assert encode(understood("s3://pile/texts"), tmp_path / "out.h5") == expected


@pytest.mark.parametrize(
    "content", [LINES.replace(b"some", b"none"), LINES[:1_000_000], LINES * 2], ids=["other", "shorter", "longer"]
)
def test_an_object_that_is_replaced_meanwhile_is_refused(aws: EmbeddedAws, tmp_path: Path, content: bytes) -> None:
    s3.client().put_object(Bucket="pile", Key="changing.json", Body=LINES)
    understanding = understood("s3://pile/changing.json")

    def replace(_: int) -> None:
        s3.client().put_object(Bucket="pile", Key="changing.json", Body=content)

    with (
        aws.faults.during(CutConnection(times=1)),
        pytest.raises(DataError, match=r"s3://pile/changing\.json was replaced while it was read"),
    ):
        encode(understanding, tmp_path / "out" / "out.h5", report=replace)
    assert list((tmp_path / "out").iterdir()) == []


def test_an_object_that_is_removed_meanwhile_is_refused(tmp_path: Path) -> None:
    s3.client().put_object(Bucket="pile", Key="going.json", Body=LINES)

    def remove(_: int) -> None:
        s3.client().delete_object(Bucket="pile", Key="going.json")

    with pytest.raises(DataError, match=r"there is nothing at s3://pile/going\.json"):
        encode(understood("s3://pile/going.json"), tmp_path / "out" / "out.h5", report=remove)
    assert list((tmp_path / "out").iterdir()) == []
