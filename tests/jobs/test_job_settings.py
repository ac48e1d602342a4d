"""The options of a job have every setting; what an option leaves open follows from the others."""

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from common.options import argparse_argument
from corpus.dataset_settings import Settings
from jobs.job_settings import INPUT_SETTINGS, SETTINGS, read_job_settings, read_settings, settings_arguments
from tests.corpus.reading.inputs.beginnings import tuples

ROWS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("job_settings.yaml").read_text())
CLASSES = st.lists(st.text("ab '\"$\u00e9,[", min_size=1, max_size=5), min_size=3, max_size=5, unique=True).map(tuple)


def parsed(*words: str) -> Namespace:
    parser = ArgumentParser()
    for each in (*SETTINGS, *INPUT_SETTINGS):
        parser.add_argument(*each.flags, **argparse_argument(each))
    return parser.parse_args(words)


@given(st.booleans(), st.sampled_from(["letters", "tokens"]), st.booleans(), st.integers(1, 10**7), CLASSES)
def test_options_give_settings_back(
    ragged: bool, words: str, duplicates: bool, size: int, classes: tuple[str, ...]
) -> None:
    settings = Settings(
        ragged=ragged,
        words=words,
        duplicates=duplicates,
        vocabulary_size=size,
        labelled=ragged,
        classes=classes if ragged else (),
        stopwords="none",
    )
    assert read_job_settings(parsed(*settings_arguments(settings), "--stopwords=none")) == settings


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['options']} {row.get('preset', '')}")
def test_what_options_leave_open_follows_from_the_others_or_they_are_refused(row: dict[str, Any]) -> None:
    try:
        read = read_settings(parsed(*row["options"].split()), tuple(row.get("classes", ())), row.get("preset"))
    except DataError as error:
        found: dict[str, Any] = {"refused": str(error)}
    else:
        found = {"settings": {name: value for name, value in asdict(read).items() if value != asdict(Settings())[name]}}
    expected = {"refused": row["refused"]} if "refused" in row else {"settings": tuples(row["settings"])}
    assert found == expected
