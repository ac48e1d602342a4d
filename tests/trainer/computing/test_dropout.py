"""Dropout masks: they depend on seed, step and row, and drop the right share without changing the mean."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.computing.dropout import POOL, Dropout, keys

ROWS = st.lists(st.integers(0, 2**40), min_size=1, max_size=50, unique=True)


@given(st.integers(0, 2**31), st.integers(0, 10**7), ROWS, st.randoms(use_true_random=False))
def test_the_key_of_a_row_does_not_depend_on_other_rows(seed, step, rows, random):
    some = random.sample(rows, random.randint(1, len(rows)))
    alone = dict(zip(rows, keys(seed, step, np.array(rows)).tolist(), strict=True))
    assert keys(seed, step, np.array(some)).tolist() == [alone[row] for row in some]
    assert all(0 <= key < POOL for key in alone.values())


def test_keys_are_spread_over_rows_steps_and_seeds():
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
    # Adjacent rows and steps have unrelated keys.
    assert abs(np.corrcoef(keys(0, 0, rows), keys(0, 1, rows))[0, 1]) < 0.02


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_dropout_drops_its_share_and_keeps_the_mean(share):
    torch.manual_seed(0)
    places, ones = Dropout(share, 64), torch.ones(20_000, 64)
    dropped = places(ones, torch.from_numpy(keys(0, 0, np.arange(20_000))))
    assert float((dropped == 0).float().mean()) == pytest.approx(share, abs=0.01)
    assert float(dropped.mean()) == pytest.approx(1.0, abs=0.02)
    assert sorted(set(dropped.flatten().tolist())) == pytest.approx([0.0, 1 / (1 - share)])


def test_each_time_has_another_mask():
    torch.manual_seed(0)
    dropped = Dropout(0.5, 32).at_each_time(torch.ones(9, 4, 32), torch.tensor([1, 5, POOL - 1, 77]))
    assert len({tuple(mask.tolist()) for mask in dropped.flatten(0, 1)}) > 30


def test_without_keys_or_share_nothing_is_dropped():
    values = torch.rand(3, 8)
    assert torch.equal(Dropout(0.5, 8)(values, None), values)
    assert torch.equal(Dropout(0.0, 8)(values, torch.tensor([1, 2, 3])), values)
