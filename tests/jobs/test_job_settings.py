"""The options of a job have every setting; what an option leaves open follows from the others."""

from argparse import ArgumentParser, Namespace
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from common.options import argparse_argument
from corpus.dataset_settings import DEFAULT, FIXED, Settings
from jobs.job_settings import INPUT_SETTINGS, SETTINGS, read_job_settings, read_settings, settings_arguments

CLASSES = st.lists(st.text("ab '\"$\u00e9,[", min_size=1, max_size=5), min_size=3, max_size=5, unique=True).map(tuple)


def parsed(*words: str) -> Namespace:
    parser = ArgumentParser()
    for each in (*SETTINGS, *INPUT_SETTINGS):
        parser.add_argument(*each.flags, **argparse_argument(each))
    return parser.parse_args(words)


def read(*options: str, classes: tuple[str, ...] = (), preset: str | None = None) -> Settings:
    return read_settings(parsed(*options), classes, preset)


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


def test_usual_sizes_and_stopwords_follow_from_rows_and_words() -> None:
    assert read() == read("--rows", "ragged") == DEFAULT
    assert read("--rows", "fixed") == read("--row-length", "400") == FIXED
    assert read("--row-length", "50").row_length == 50
    assert read("--words", "letters", "--stopwords", "nltk", "--vocabulary-size", "7") == replace(
        DEFAULT, words="letters", stopwords="nltk", vocabulary_size=7
    )


def test_the_reference_is_a_preset_over_which_options_take_precedence() -> None:
    assert read(preset="reference") == Settings()
    assert read("--rows", "ragged", preset="reference") == Settings(ragged=True, vocabulary_size=2_000_000)
    assert read("--words", "tokens", preset="reference") == Settings(words="tokens", stopwords="none")
    assert read("--row-length", "50", preset="reference") == Settings(row_length=50)
    assert read(classes=("a", "b", "c"), preset="reference").ragged


def test_rows_of_more_than_two_classes_are_ragged() -> None:
    assert read(classes=("a", "b", "c")).ragged
    with pytest.raises(DataError, match="there are 3 classes, but only ragged rows may have more than two"):
        read("--rows", "fixed", classes=("a", "b", "c"))


def test_ragged_rows_have_no_length() -> None:
    with pytest.raises(DataError, match="the row length is 50, but ragged rows are whole texts"):
        read("--rows", "ragged", "--row-length", "50")
