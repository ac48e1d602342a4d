"""Ranks that are slower than their kind are found, once, and no others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.balancing.slow_ranks import SLOW, WINDOW_SECONDS, WINDOWS, Slow, SlowRanks


def watched(watch: SlowRanks, rates: list[float], windows: float, *, steps: int = 20) -> list[Slow]:
    """What is found while ranks with these rates compute for so many windows, balanced."""
    seconds = np.full(len(rates), WINDOW_SECONDS / steps)
    rows = np.array(rates) * seconds * 1000
    found = []
    for _ in range(round(windows * steps)):
        found += watch.observe(rows.astype(np.int64), seconds)
    return found


def test_a_slow_rank_is_found_once() -> None:
    watch = SlowRanks(["a"] * 4)
    assert watched(watch, [1.0, 1.0, 0.5, 1.1], WINDOWS - 1) == []
    assert watched(watch, [1.0, 1.0, 0.5, 1.1], 3) == [Slow(2, pytest.approx(0.5))]


def test_a_rank_that_is_slow_again_is_found_again() -> None:
    watch = SlowRanks(["a", "a"])
    found = [
        *watched(watch, [1.0, 0.4], WINDOWS + 1),
        *watched(watch, [1.0, 1.0], 1),
        *watched(watch, [1.0, 0.4], WINDOWS + 1),
    ]
    assert [each.rank for each in found] == [1, 1]


@given(
    st.lists(st.sampled_from("ab"), min_size=1, max_size=8),
    st.lists(st.floats(0.85, 1.15), min_size=8, max_size=8),
    st.floats(0.1, 10.0),
)
def test_ranks_of_another_kind_and_small_differences_are_no_matter(
    kinds: list[str], jitter: list[float], faster: float
) -> None:
    rates = [each * (faster if kind == "b" else 1.0) for kind, each in zip(kinds, jitter, strict=False)]
    assert watched(SlowRanks(kinds), rates, 5) == []


@given(st.integers(2, 8), st.integers(0, 7), st.floats(0.05, SLOW - 0.05))
def test_one_that_is_slower_than_all_others_of_its_kind_is_found(ranks: int, which: int, share: float) -> None:
    rates = [share if rank == which % ranks else 1.0 for rank in range(ranks)]
    assert [each.rank for each in watched(SlowRanks([0] * ranks), rates, WINDOWS)] == [which % ranks]


def test_steps_without_times_say_nothing() -> None:
    watch = SlowRanks(["a", "a"])
    for _ in range(100):
        assert watch.observe(np.array([8, 8]), np.zeros(2)) == []
