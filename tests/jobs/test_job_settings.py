"""A job's option has every setting. Settings that a user leaves open follow from the others."""

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from common.options import argparse_argument
from corpus.dataset_settings import Settings
from jobs.job_settings import SETTINGS, parse_settings, read_settings, settings_argument
from tests.corpus.reading.inputs.beginnings import tuples

ROWS = yaml.safe_load(Path(__file__).with_name("job_settings.yaml").read_text())
CLASSES = st.lists(st.text("ab '\"$\u00e9,[", min_size=1, max_size=5), min_size=3, max_size=5, unique=True).map(tuple)


def parsed(*words: str) -> Namespace:
    parser = ArgumentParser()
    for each in SETTINGS:
        parser.add_argument(*each.flags, **argparse_argument(each))
    return parser.parse_args(words)


@given(CLASSES, st.none() | st.text(), st.sampled_from([{}, {"rating_steps": 2, "rating_range": (1, 10)}]))
def test_the_option_of_a_job_preserves_settings(classes, label, scale) -> None:
    for settings in (
        Settings(ragged=True, words="tokens", labelled=True, classes=classes),
        Settings(labelled=True, positive_label=label, duplicates=True, test_input=True),
        Settings(**scale, row_length=7, vocabulary_size=9, test_share=0.3, stopwords="/it's/a file"),
    ):
        option = settings_argument(settings)
        assert option.isascii()
        assert "'" not in option
        assert parse_settings(option.removeprefix("--settings=")) == settings


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['options']} {row.get('preset', '')}")
def test_open_settings_follow_from_the_others(row) -> None:
    read = read_settings(parsed(*row["options"].split()), tuple(row.get("classes", ())), row.get("preset"))
    usual = asdict(Settings())
    assert {name: value for name, value in asdict(read).items() if value != usual[name]} == tuples(row["settings"])


@pytest.mark.parametrize(
    ("options", "classes"), [("--rows fixed", ("a", "b", "c")), ("--rows ragged --row-length 50", ())]
)
def test_settings_that_exclude_each_other_are_refused(options, classes, messages) -> None:
    with messages.raises(DataError):
        read_settings(parsed(*options.split()), classes, None)
