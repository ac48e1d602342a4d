"""The options of a job have every setting; what an option leaves open follows from the others."""

from argparse import ArgumentParser, Namespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from common.options import argparse_argument
from corpus.dataset_settings import Settings
from jobs.job_settings import INPUT_SETTINGS, SETTINGS, read_job_settings, read_settings, settings_arguments

CLASSES = st.lists(st.text("ab '\"$\u00e9,[", min_size=1, max_size=5), min_size=3, max_size=5, unique=True).map(tuple)


def parsed(*words: str) -> Namespace:
    parser = ArgumentParser()
    for each in (*SETTINGS, *INPUT_SETTINGS):
        parser.add_argument(*each.flags, **argparse_argument(each))
    return parser.parse_args(words)


def read(*options: str, classes: tuple[str, ...] = ()) -> Settings:
    return read_settings(parsed(*options), classes)


@given(st.booleans(), st.sampled_from(["letters", "tokens"]), st.booleans(), st.integers(1, 10**7), CLASSES)
def test_the_options_of_a_job_give_its_settings_back(
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
    assert read() == Settings()
    assert read("--rows", "ragged") == Settings(ragged=True, vocabulary_size=2_000_000)
    assert read("--words", "tokens") == Settings(words="tokens", stopwords="none")
    assert read("--words", "tokens", "--stopwords", "nltk", "--rows", "ragged", "--vocabulary-size", "7") == Settings(
        words="tokens", ragged=True, vocabulary_size=7
    )


def test_rows_of_more_than_two_classes_are_ragged() -> None:
    assert read(classes=("a", "b", "c")).ragged
    with pytest.raises(DataError, match="there are 3 classes, but only ragged rows may have more than two"):
        read("--rows", "fixed", classes=("a", "b", "c"))


def test_ragged_rows_have_no_length() -> None:
    with pytest.raises(DataError, match="the row length is 50, but ragged rows are whole texts"):
        read("--rows", "ragged", "--row-length", "50")
