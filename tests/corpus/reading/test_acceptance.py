"""Unusable input is refused with a message that names the files and their values and says what to do."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.acceptance import check_input, require_classes
from corpus.reading.formats import Format
from corpus.reading.sources import Source
from corpus.reading.tally import Tally
from tests.corpus.reading.inputs.beginnings import tuples

ROWS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("acceptance.yaml").read_text())
FILE = Source(address="/in.csv", size=1, identity="x", format=Format(kind="text"))
TEST = replace(FILE, address="/test.csv", test=True)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['codes']} {row['settings']}")
def test_texts_of_one_class_are_refused(row: dict[str, Any]) -> None:
    sentence = None
    try:
        require_classes(row["codes"], Settings(**tuples(row["settings"])), [TEST, FILE])
    except DataError as error:
        sentence = str(error)
    assert sentence == row["refused"]


@pytest.mark.parametrize(("begins", "hint"), [(b'5\t"a part', True), (b'5\t"a text"', False)])
def test_lines_with_half_a_quoted_text_propose_the_quoting_option(begins: bytes, hint: bool) -> None:
    tally = Tally()
    tally.count_malformed("too_few_columns", "/in.tsv", 0, 7, begins)
    with pytest.raises(DataError, match="1 of 1 lines are malformed") as error:
        check_input(tally, 0.05)
    assert ("give --quoting doubled" in str(error.value)) == hint


def test_lines_with_a_backslash_before_a_quote_propose_doubled_quotes() -> None:
    tally = Tally()
    tally.count_malformed("not_csv", "/in.csv", 0, 7, b'5,"it said \\"fine\\""')
    with pytest.raises(
        DataError, match="double the quotes, because Shoal does not support quotes escaped by backslashes"
    ):
        check_input(tally, 0.05)
