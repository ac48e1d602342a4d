"""Rows of finite text."""

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.stream.stream_settings import read_settings
from tests.trainer.embeddings import made_text
from trainer.embeddings import text_rows
from trainer.embeddings.stream_rows import await_first_parts, read_start
from trainer.embeddings.text_rows import Vocabulary, WordCounts, held_out_rows, read_rows
from trainer.task import TRAINING


def test_padding_rows_are_left_out_few_words_need_no_note_and_epochs_have_at_least_the_requested_words(tmp_path):
    stream = made_text.stream(tmp_path / "stream", made_text.lines(20), part_rows=64)
    rows = read_rows(stream, read_settings(stream), min_count=1)
    assert rows.sizes[TRAINING] == 3  # of 128 tokens: 20 lines of 12 words and an end
    assert rows.words == 240
    assert [rows.default_epochs(words) for words in (None, 1, 240, 241, 480)] == [5, 1, 1, 2, 2]
    assert not rows.notes


@given(rows=st.integers(1, 100_000))
def test_any_text_has_held_out_rows(rows):
    held = held_out_rows(rows)
    assert 1 <= len(held) <= max(1, min(256, rows // 128))
    assert held[-1] < rows


@pytest.mark.parametrize("endless", [False, True])
def test_dropped_counts_of_rare_words_are_reported(tmp_path, endless, messages):
    once = [f"id{number}" for number in range(3_000)]
    lines = [f"{word} often {'seldom' if number % 300 == 0 else 'often'}" for number, word in enumerate(once)]
    stream = made_text.stream(tmp_path / "stream", lines, part_rows=4)
    settings = read_settings(stream)
    with patch.object(text_rows, "_MOST_WORDS", 1_000):
        if endless:
            parts = await_first_parts(stream, settings, words=1 << 40, minutes=None, stop=lambda: False)
            found = read_start(stream, parts, min_count=5)
        else:
            found = read_rows(stream, settings, min_count=5)
    assert found.vocabulary.words[0] == "often"
    assert found.vocabulary.counts[0] == 5_990
    assert not set(found.vocabulary.words) & set(once)
    (note,) = found.notes
    messages.check(note)


def test_a_vocabulary_has_the_words_that_occur_often_enough_the_most_frequent_first(tmp_path):
    counted = WordCounts()
    for counts in ({"b": 1, "d": 1}, {"c": 2, "b": 1, "a": 3}):
        counted.add_counts(counts)
    vocabulary = Vocabulary.of(counted, min_count=2, where=tmp_path)
    assert (vocabulary.words, vocabulary.counts.tolist()) == (("a", "b", "c"), [3, 2, 2])
