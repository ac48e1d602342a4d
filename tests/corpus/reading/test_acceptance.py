"""Unusable input is refused with a message that names the files and their values and says what to do."""

from contextlib import nullcontext
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import pytest
import yaml

from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.acceptance import check_input, label_notes, require_classes
from corpus.reading.formats import Format
from corpus.reading.sources import Source
from corpus.reading.tally import MAX_LABELS, Tally, other_labels
from tests.corpus.reading.cuts import read, whole
from tests.corpus.reading.inputs.beginnings import tuples

TABLE = yaml.safe_load(Path(__file__).with_name("acceptance.yaml").read_text())
FILE = Source(address="/in.csv", size=1, identity="x", format=Format(kind="text"))
TEST = replace(FILE, address="/test.csv", test=True)


@pytest.mark.parametrize("row", TABLE["classes"], ids=lambda row: f"{row['codes']} {row['settings']}")
def test_texts_of_one_class_are_refused(row, messages) -> None:
    with messages.raises(DataError) if row["refused"] else nullcontext():
        require_classes(row["codes"], Settings(**tuples(row["settings"])), [TEST, FILE])


LABELS = TABLE["labels"]
LABELS += [{**LABELS[0], "case": "more labels than are counted", "refused": True}]
LABELS[-1]["labels"] = dict.fromkeys(map(str, range(MAX_LABELS + 1)), 1)


@pytest.mark.parametrize("row", LABELS, ids=itemgetter("case"))
def test_all_other_labels_of_the_input_are_listed_and_many_unexpected_ones_are_refused(row, messages) -> None:
    settings, labels, every = Settings(**tuples(row["settings"])), row["labels"], Tally()
    for number in (1, 2):  # two tasks
        part = Tally()
        part.counts["lines"] = 50 if len(labels) < 50 else 1_000
        part.add_labels({label: count // 2 if number == 1 else -(-count // 2) for label, count in labels.items()})
        for key, value in part.records():
            every.add_records(key, [value])
    with messages.raises(DataError) if row.get("refused") else nullcontext():
        check_input(every, 0.05, settings)
    for note in label_notes(other_labels(every.counts), settings):
        messages.check(note)


def test_labels_are_counted_once_even_if_a_record_is_tried_twice(tmp_path) -> None:
    lines = 'label,text\nbad,"a\nbad,b"\nbad,"a\nb\nc\nd\ne\nf"\nfair,c\n'
    form = Format(kind="csv", text=("text",), value="label", header=True, columns=("label", "text"))
    good = Settings(labelled=True, positive_label="good", negative_labels=("bad", "fair"))
    (tmp_path / "a.csv").write_text(lines)
    _, tally = read([whole(tmp_path / "a.csv", form)], good)
    assert other_labels(tally.counts) == {"bad": 2, "fair": 1}


LINES = {
    "half a quoted text": ("too_few_columns", b'5\t"a part'),
    "a quoted text": ("too_few_columns", b'5\t"a text"'),
}


@pytest.mark.parametrize("kind", LINES)
def test_the_message_about_malformed_lines_proposes_an_option_for_their_quotes(kind, messages) -> None:
    reason, begins = LINES[kind]
    tally = Tally()
    tally.count_malformed(reason, "/in", 0, 7, begins)
    with messages.raises(DataError):
        check_input(tally, 0.05, Settings())
