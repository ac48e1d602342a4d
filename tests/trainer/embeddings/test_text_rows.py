"""Rows of finite text."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from corpus.stream.stream_settings import read_settings
from tests.trainer.embeddings import made_text
from trainer.embeddings.text_rows import Vocabulary, held_out_rows, read_rows
from trainer.task import TRAINING


def test_padding_rows_are_left_out_and_epochs_have_at_least_the_requested_words(tmp_path):
    stream = made_text.stream(tmp_path / "stream", made_text.lines(20), part_rows=64)
    rows = read_rows(stream, read_settings(stream), min_count=1)
    assert rows.sizes[TRAINING] == 3  # of 128 tokens: 20 lines of 12 words and an end
    assert rows.words == 240
    assert [rows.default_epochs(words) for words in (None, 1, 240, 241, 480)] == [5, 1, 1, 2, 2]


@given(rows=st.integers(1, 100_000))
def test_any_text_has_held_out_rows(rows):
    held = held_out_rows(rows)
    assert 1 <= len(held) <= max(1, min(256, rows // 128))
    assert held[-1] < rows


def test_a_vocabulary_has_the_words_that_occur_often_enough_the_most_frequent_first(tmp_path):
    vocabulary = Vocabulary.of(Counter({"b": 2, "d": 1, "c": 2, "a": 3}), min_count=2, where=tmp_path)
    assert (vocabulary.words, vocabulary.counts.tolist()) == (("a", "b", "c"), [3, 2, 2])
