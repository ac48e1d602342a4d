"""Settings that a user leaves open follow from the others."""

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml

from common.errors import DataError
from common.options import argparse_argument
from corpus.dataset_settings import Settings
from jobs.job_settings import SETTINGS, read_settings
from tests.corpus.reading.inputs.beginnings import tuples

ROWS = yaml.safe_load(Path(__file__).with_name("job_settings.yaml").read_text())


def parsed(*words: str) -> Namespace:
    parser = ArgumentParser()
    for each in SETTINGS:
        parser.add_argument(*each.flags, **argparse_argument(each))
    return parser.parse_args(words)


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
