"""Unusable input is refused with a message that names the files and their values and says what to do."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.acceptance import check_input, require_classes
from corpus.reading.formats import Format
from corpus.reading.sources import Source
from corpus.reading.tally import Tally
from tests.corpus.reading.inputs.beginnings import tuples

ROWS = yaml.safe_load(Path(__file__).with_name("acceptance.yaml").read_text())
FILE = Source(address="/in.csv", size=1, identity="x", format=Format(kind="text"))
TEST = replace(FILE, address="/test.csv", test=True)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['codes']} {row['settings']}")
def test_texts_of_one_class_are_refused(row, messages) -> None:
    with messages.raises(DataError) if row["refused"] else nullcontext():
        require_classes(row["codes"], Settings(**tuples(row["settings"])), [TEST, FILE])


LINES = {
    "half a quoted text": ("too_few_columns", b'5\t"a part'),
    "a quoted text": ("too_few_columns", b'5\t"a text"'),
    "a backslash before a quote": ("not_csv", b'5,"it said \\"fine\\""'),
}


@pytest.mark.parametrize("kind", LINES)
def test_the_message_about_malformed_lines_proposes_an_option_for_their_quotes(kind, messages) -> None:
    reason, begins = LINES[kind]
    tally = Tally()
    tally.count_malformed(reason, "/in", 0, 7, begins)
    with messages.raises(DataError):
        check_input(tally, 0.05)
