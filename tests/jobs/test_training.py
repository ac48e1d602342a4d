"""Raw texts become a dataset to train on, or they are refused and no dataset is written."""

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from common.errors import DataError
from corpus.dataset import open_dataset
from corpus.dataset_settings import DEFAULT, Settings
from corpus.raw_texts import RawTexts
from corpus.reading import s3
from corpus.reading.inputs.inspection import inspect_inputs
from corpus.reading.sources import Inputs, ReadingOptions
from corpus.rules import VALIDATION_SHARE
from jobs.merge import MergeResult
from jobs.training import make_training_dataset
from tests.corpus.reading.inputs.beginnings import content_of, written
from tests.reviews import json_lines

SETTINGS = replace(DEFAULT, duplicates=True)
ROWS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("training_texts.yaml").read_text())


def request(
    files: Sequence[str], *, test: Sequence[str] = (), settings: Settings = SETTINGS, **reading: Any
) -> RawTexts:
    inspection = inspect_inputs(Inputs(files=tuple(files), test=tuple(test), options=ReadingOptions(**reading)))
    return RawTexts(
        sources=inspection.sources,
        settings=inspection.settings(settings),
        max_malformed=0.05,
        plain_bytes=round(inspection.plain_bytes),
    )


def make(texts: RawTexts, folder: Path) -> MergeResult:
    return make_training_dataset(texts, folder, option="--cache")


def made(folder: Path, row: dict[str, Any], messages) -> dict[str, Any]:
    """Return the digest of the dataset and the counts above 0, or check the message of the error."""
    for name, content in row["files"].items():
        written(folder, name, content_of(content))
    files, test = (
        [str(folder / name) for name in row["files"] if (name == "test.json") == is_test] for is_test in (False, True)
    )
    try:
        result = make(request(files, test=test, settings=replace(SETTINGS, **row.get("settings", {}))), folder / "out")
    except DataError as error:
        messages.check(error)
        return {"refused": True}
    shown = {"digest": result.digest, **result.counts}
    for name in ("malformed_by_reason", "lengths"):
        shown[name] = {kind: number for kind, number in result.counts[name].items() if number}
    return {name: value for name, value in shown.items() if value and name != "frequent_words"}


@pytest.mark.parametrize("row", ROWS, ids=itemgetter("case"))
def test_texts_are_counted_or_refused(tmp_path: Path, row: dict[str, Any], messages) -> None:
    assert made(tmp_path, row, messages) == row["found"]


def test_validation_rows_have_both_classes_if_each_file_has_one(tmp_path: Path) -> None:
    for label, name in enumerate(("neg", "pos")):
        texts = [{"text": f"{name} {n}", "label": label} for n in range(2_000)]
        (tmp_path / f"{name}.json").write_bytes(json_lines(*texts, {"text": "the other class", "label": 1 - label}))
    result = make(request([str(tmp_path / "neg.json"), str(tmp_path / "pos.json")]), tmp_path / "out")
    with open_dataset(result.dataset) as dataset:
        labels = dataset.train.rows(0, len(dataset.train)).labels
    assert 0.3 < labels[: int(len(labels) * VALIDATION_SHARE)].mean() < 0.7
    assert labels.mean() == pytest.approx(0.5, abs=0.02)


def test_labels_of_more_than_256_classes_are_stored(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"".join(b"__label__c%d text %d\n" % (n % 300, n) for n in range(900)))
    classes = tuple(f"c{n}" for n in range(300))
    result = make(request([str(tmp_path / "in.txt")], classes=classes), tmp_path / "out")
    assert result.counts["labels"]["before"] == {str(label): 3 for label in range(300)}
    with open_dataset(result.dataset) as dataset:
        rows = dataset.train.rows(0, len(dataset.train))
        words = ["", "0", *dataset.vocabulary]
    numbers = [int(words[token]) for token in rows.tokens[1::2]]
    assert len(numbers) > 700
    assert (np.array(numbers) % 300 == rows.labels).sum() >= len(numbers) - 1
    assert (rows.ratings.dtype, rows.ratings.any()) == (np.uint8, False)


@pytest.mark.usefixtures("pile")
def test_a_replaced_file_of_the_same_size_is_refused(tmp_path: Path, messages) -> None:
    content = b"".join(b"__label__%d text %d of many\n" % (1 + n % 2, n) for n in range(400))
    s3.client().put_object(Bucket="pile", Key="a.txt", Body=content)
    texts = request(["s3://pile/a.txt"])
    s3.client().put_object(Bucket="pile", Key="a.txt", Body=content.replace(b"many", b"some"))
    with messages.raises(DataError):
        make(texts, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
