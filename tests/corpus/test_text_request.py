"""A request to encode texts on a different machine is checked when it is read, and its progress is reported."""

import gzip
import json
from dataclasses import asdict, replace
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest
import yaml

from common.errors import DataError
from common.json_values import from_json
from corpus.dataset import open_dataset
from corpus.raw_texts import SETTINGS
from corpus.reading import s3
from corpus.reading.formats import Format
from corpus.reading.sources import Source
from corpus.reading.storage import identity_of
from corpus.text_request import TextProgress, TextRequest

LINES = (
    b"".join(b"__label__%d text %d of many\n" % (1 + n % 2, n) for n in range(400)) + b"without a label\n__label__1\n"
)
SOURCE = Source(address="s3://pile/a.txt", size=1, identity="x", format=Format(kind="fasttext"))
TEST = replace(SOURCE, address="s3://pile/b.csv", test=True, code=1, format=Format(kind="csv", text=("1",)))
LABELLED = replace(SETTINGS, labelled=True, test_share=0.25)
ASKED = TextRequest(sources=(SOURCE, TEST), settings=LABELLED, max_malformed=0.05, plain_bytes=2)
ROWS = yaml.safe_load(Path(__file__).with_name("wrong_requests.yaml").read_text())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['path']} {row.get('value', 'absent')}")
def test_a_request_with_a_wrong_value_is_refused(row, messages) -> None:
    written = json.loads(json.dumps(asdict(ASKED)))
    *steps, last = row["path"]
    place = reduce(getitem, steps, written)
    place.pop(last) if "value" not in row else place.__setitem__(last, row["value"])
    with messages.raises(DataError):
        from_json(TextRequest, written)


@pytest.mark.parametrize("text", ["", "[]", '{"lines": 1}', '{"read": "1"}', '{"read": 1.0}'])
def test_invalid_progress_is_refused(text) -> None:
    with pytest.raises(DataError):
        TextProgress.from_json(text)


def asked_for(name: str, content: bytes) -> TextRequest:
    s3.client().put_object(Bucket="pile", Key=name, Body=content)
    source = replace(SOURCE, address=f"s3://pile/{name}", size=len(content), identity=identity_of(f"s3://pile/{name}"))
    return replace(ASKED, sources=(source,), plain_bytes=len(LINES))


@pytest.mark.usefixtures("pile")
def test_requested_texts_are_encoded_and_reported(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("corpus.reading.texts._BLOCK_TEXTS", 100)
    asked = asked_for("a.txt.gz", gzip.compress(LINES))
    read: list[int] = []
    counts = asked.encode(tmp_path / "there.h5", read.append, place="instance type")
    with open_dataset(tmp_path / "there.h5") as there:
        assert len(there.train) + len(there.test) == 400
    assert len(read) > 1
    assert (sum(read), counts["lines"], counts["malformed"], counts["empty"]) == (len(LINES), 402, 1, 1)


@pytest.mark.usefixtures("pile")
def test_a_replaced_file_of_the_same_size_is_refused(tmp_path, messages) -> None:
    asked = asked_for("a.txt", LINES)
    s3.client().put_object(Bucket="pile", Key="a.txt", Body=LINES.replace(b"many", b"some"))
    with messages.raises(DataError):
        asked.encode(tmp_path / "there.h5", lambda _: None, place="instance type")
    assert list(tmp_path.iterdir()) == []
