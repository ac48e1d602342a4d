"""The rows of a text that has an end."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from corpus.stream.settings import read_settings
from tests.trainer.embeddings import made_text
from trainer.embeddings.text_rows import held_out_rows, read_rows
from trainer.task import TRAINING


def test_rows_behind_the_end_of_a_text_are_left_out(tmp_path: Path) -> None:
    stream = made_text.stream(tmp_path / "stream", made_text.lines(20), part_rows=64)
    found = read_rows(stream, read_settings(stream), min_count=1)
    assert found.sizes[TRAINING] == 3  # of 128 tokens: 20 lines of 12 words and an end
    assert found.words == 240


@given(rows=st.integers(1, 100_000))
def test_any_text_has_rows_that_it_is_judged_by(rows: int) -> None:
    held = held_out_rows(rows)
    assert 1 <= len(held) <= max(1, min(256, rows // 128))
    assert held[-1] < rows
