"""A request to make a dataset on a different machine is checked when it is read, and so is its progress."""

import json
from dataclasses import asdict, replace
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest
import yaml

from common.errors import DataError
from common.json_values import from_json
from corpus.dataset_settings import DEFAULT
from corpus.raw_texts import RawTexts, TextProgress
from corpus.reading.formats import Format
from corpus.reading.sources import Source

SOURCE = Source(address="s3://pile/a.txt", size=1, identity="x", format=Format(kind="fasttext"))
TEST = replace(SOURCE, address="s3://pile/b.csv", test=True, code=1, format=Format(kind="csv", text=("1",)))
LABELLED = replace(DEFAULT, duplicates=True, labelled=True, test_share=0.25)
ASKED = RawTexts(sources=(SOURCE, TEST), settings=LABELLED, max_malformed=0.05, plain_bytes=2)
ROWS = yaml.safe_load(Path(__file__).with_name("wrong_requests.yaml").read_text())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['path']} {row.get('value', 'absent')}")
def test_a_request_with_a_wrong_value_is_refused(row, messages) -> None:
    written = json.loads(json.dumps(asdict(ASKED)))
    *steps, last = row["path"]
    place = reduce(getitem, steps, written)
    place.pop(last) if "value" not in row else place.__setitem__(last, row["value"])
    with messages.raises(DataError):
        from_json(RawTexts, written)


@pytest.mark.parametrize("text", ["", "[]", '{"lines": 1}', '{"read": "1"}', '{"read": 1.0}'])
def test_invalid_progress_is_refused(text) -> None:
    with pytest.raises(DataError):
        TextProgress.from_json(text)
