"""Masks of dropout: by seed, step and row, of the right share, and alike on average."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.dropout import FEWEST_WORDS, POOL, Dropout, Words, keys

ROWS = st.lists(st.integers(0, 2**40), min_size=1, max_size=50, unique=True)


@given(st.integers(0, 2**31), st.integers(0, 10**7), ROWS, st.randoms(use_true_random=False))
def test_a_rows_key_is_the_same_in_any_company(seed: int, step: int, rows: list[int], random) -> None:
    some = random.sample(rows, random.randint(1, len(rows)))
    alone = dict(zip(rows, keys(seed, step, np.array(rows)).tolist(), strict=True))
    assert keys(seed, step, np.array(some)).tolist() == [alone[row] for row in some]
    assert all(0 <= key < POOL for key in alone.values())


def test_keys_are_spread_over_rows_steps_and_seeds() -> None:
    rows = np.arange(100_000)
    for found in (
        keys(0, 0, rows),
        np.array([keys(0, step, rows[:1])[0] for step in range(20_000)]),
        np.array([keys(seed, 0, rows[:1])[0] for seed in range(20_000)]),
    ):
        expected = len(found) / POOL
        counts = np.bincount(found, minlength=POOL)
        chi_squared = float(((counts - expected) ** 2 / expected).sum())
        assert abs(chi_squared - POOL) < 6 * np.sqrt(2 * POOL)
    # Neighbours in rows and in steps have nothing to do with each other.
    assert abs(np.corrcoef(keys(0, 0, rows), keys(0, 1, rows))[0, 1]) < 0.02


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_it_drops_its_share_and_keeps_the_mean(share: float) -> None:
    torch.manual_seed(0)
    places, ones = Dropout(share, 64), torch.ones(20_000, 64)
    dropped = places(ones, torch.from_numpy(keys(0, 0, np.arange(20_000))))
    assert float((dropped == 0).float().mean()) == pytest.approx(share, abs=0.01)
    assert float(dropped.mean()) == pytest.approx(1.0, abs=0.02)
    assert sorted(set(dropped.flatten().tolist())) == pytest.approx([0.0, 1 / (1 - share)])


def test_times_have_masks_of_their_own() -> None:
    torch.manual_seed(0)
    dropped = Dropout(0.5, 32).at_each_time(torch.ones(9, 4, 32), torch.tensor([1, 5, POOL - 1, 77]))
    assert len({tuple(mask.tolist()) for mask in dropped.flatten(0, 1)}) > 30


def test_without_keys_or_share_nothing_is_dropped() -> None:
    values = torch.rand(3, 8)
    assert torch.equal(Dropout(0.5, 8)(values, None), values)
    assert torch.equal(Dropout(0.0, 8)(values, torch.tensor([1, 2, 3])), values)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.floats(0.05, 0.95), st.data())
def test_words_that_are_left_keep_their_order_and_depend_on_the_rows_key_alone(
    lengths: list[int], share: float, data: st.DataObject
) -> None:
    words, numbers = Words(share, 40, seed=1), keys(2, 3, np.arange(len(lengths)))
    left = words(np.array(lengths), numbers)
    for row, (count, places) in enumerate(zip(left.lengths.tolist(), left.places.tolist(), strict=True)):
        assert min(FEWEST_WORDS, lengths[row]) <= count <= lengths[row]
        assert places[:count] == sorted(set(places[:count]))
        assert 0 <= places[0] <= places[count - 1] < lengths[row]
    row = data.draw(st.integers(0, len(lengths) - 1))
    alone = words(np.array(lengths[row : row + 1]), numbers[row : row + 1])
    count = int(alone.lengths[0])
    assert count == left.lengths[row]
    assert alone.places[0, :count].tolist() == left.places[row, :count].tolist()


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_every_place_loses_its_share_of_words(share: float) -> None:
    left = Words(share, 30, seed=0)(np.full(40_000, 30), keys(0, 0, np.arange(40_000)))
    real = np.arange(left.places.shape[1]) < left.lengths[:, None]
    times = np.bincount(left.places[real], minlength=30) / 40_000
    assert times == pytest.approx(1 - share, abs=0.03)


def test_a_row_that_would_lose_too_many_words_keeps_any_four_neighbours() -> None:
    left = Words(0.999999, 9, seed=0)(np.full(9_000, 9), keys(0, 0, np.arange(9_000)))
    assert set(left.lengths.tolist()) == {FEWEST_WORDS}
    places = left.places[:, :FEWEST_WORDS]
    assert {tuple(row) for row in (places - places[:, :1]).tolist()} >= {(0, 1, 2, 3)}
    assert len({tuple(row) for row in places.tolist()}) == 9
    assert np.bincount(places.flatten(), minlength=9) / 9_000 == pytest.approx(FEWEST_WORDS / 9, abs=0.03)
