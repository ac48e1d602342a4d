"""Words that are dropped from rows: by seed, step and row, and never too many."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.classification.rows import FEWEST_WORDS, WordDropout
from trainer.computing.dropout import keys


class Kept(NamedTuple):
    lengths: npt.NDArray[np.int64]
    places: npt.NDArray[np.int32]


def kept(words: WordDropout, lengths: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> Kept:
    found = words.lengths(lengths, numbers)
    return Kept(found, words.places(lengths, numbers, found, torch.device("cpu")).numpy())


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.floats(0.05, 0.95), st.data())
def test_words_that_are_left_keep_their_order_and_depend_on_the_rows_key_alone(
    lengths: list[int], share: float, data: st.DataObject
) -> None:
    words, numbers = WordDropout(share, 40, seed=1), keys(2, 3, np.arange(len(lengths)))
    left = kept(words, np.array(lengths), numbers)
    for row, (count, places) in enumerate(zip(left.lengths.tolist(), left.places.tolist(), strict=True)):
        assert min(FEWEST_WORDS, lengths[row]) <= count <= lengths[row]
        assert places[:count] == sorted(set(places[:count]))
        assert 0 <= places[0] <= places[count - 1] < lengths[row]
    row = data.draw(st.integers(0, len(lengths) - 1))
    alone = kept(words, np.array(lengths[row : row + 1]), numbers[row : row + 1])
    count = int(alone.lengths[0])
    assert count == left.lengths[row]
    assert alone.places[0, :count].tolist() == left.places[row, :count].tolist()


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_every_place_loses_its_share_of_words(share: float) -> None:
    left = kept(WordDropout(share, 30, seed=0), np.full(40_000, 30), keys(0, 0, np.arange(40_000)))
    real = np.arange(left.places.shape[1]) < left.lengths[:, None]
    times = np.bincount(left.places[real], minlength=30) / 40_000
    assert times == pytest.approx(1 - share, abs=0.03)


def test_a_row_that_would_lose_too_many_words_keeps_any_four_neighbours() -> None:
    left = kept(WordDropout(0.999999, 9, seed=0), np.full(9_000, 9), keys(0, 0, np.arange(9_000)))
    assert set(left.lengths.tolist()) == {FEWEST_WORDS}
    places = left.places[:, :FEWEST_WORDS]
    assert {tuple(row) for row in (places - places[:, :1]).tolist()} >= {(0, 1, 2, 3)}
    assert len({tuple(row) for row in places.tolist()}) == 9
    assert np.bincount(places.flatten(), minlength=9) / 9_000 == pytest.approx(FEWEST_WORDS / 9, abs=0.03)
