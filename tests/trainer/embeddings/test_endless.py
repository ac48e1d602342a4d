"""Runs on text that has no end, with the defaults for it: they learn, and end when they are asked to."""

from pathlib import Path

import pytest

from tests.corpus.stream.reading import read_followed
from tests.trainer.embeddings import made_text
from tests.trainer.runs import notes, train_here

UNTRAINED = 4.16
"""The loss of a pair of a model that knows nothing: log 2 for the pair, and for each of five drawn words."""
LEARNING = ("--model", "skipgram", "--min-count", "1", "--threads", "1")


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("endless")
    return read_followed(home / "stream", home / "texts", made_text.bursts(8_000), part_rows=64)


def test_the_defaults_learn_from_text_without_an_end(endless: Path, tmp_path: Path) -> None:
    assert train_here(tmp_path, "--data", endless, *LEARNING)["loss"] < 0.8 * UNTRAINED


def test_a_run_says_why_it_has_ended_before_its_words(endless: Path, tmp_path: Path) -> None:
    found = train_here(tmp_path, "--data", endless, *LEARNING, "--words", "1000000")
    assert found["words_seen"] == 160_000
    expected = "the run has ended after 160,000 of the 1,000,000 words that --words asks for"
    assert any(note.startswith(expected) for note in notes(tmp_path))


def test_a_run_counts_the_tokens_outside_the_vocabulary_of_its_first_words(endless: Path, tmp_path: Path) -> None:
    options = ("--vocabulary-words", "1", "--min-count", "2", "--words", "20000")
    found = train_here(tmp_path, "--data", endless, *LEARNING, *options)
    outside, seen = found["words_outside_vocabulary"], found["words_seen"]
    assert 0 < outside < seen
    assert any(
        note.startswith(f"{outside:,} of {seen:,} tokens were outside the vocabulary") for note in notes(tmp_path)
    )
