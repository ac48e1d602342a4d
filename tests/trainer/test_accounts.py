"""What the share of ideal was lost to adds up, and tells the wait for a slow rank from the all-reduce."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.accounts import Accounts

SECONDS = st.floats(0, 10)


@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.tuples(*[SECONDS] * (2 * n)), min_size=1, max_size=10)))
def test_reasons_and_share_add_up_to_one(steps: list[tuple[float, ...]]) -> None:
    ranks = len(steps[0]) // 2
    accounts = Accounts(ranks)
    for step in steps:
        accounts.add(np.array(step[:ranks]), np.array(step[ranks:]))
    lost = accounts.lost(seconds=100.0, share=0.6, rates=[10.0] * ranks, ordering=1.0)
    assert 0.6 + sum(lost.values()) == pytest.approx(1.0)
    assert min(lost["imbalance"], lost["communication"]) >= 0


def test_the_wait_for_the_last_rank_is_imbalance_and_what_the_last_one_waits_is_communication() -> None:
    accounts = Accounts(2)
    for _ in range(10):
        accounts.add(np.array([4.0, 8.0]), np.array([5.0, 1.0]))
    lost = accounts.lost(seconds=100.0, share=0.5, rates=[30.0, 10.0], ordering=2.0)
    assert lost == pytest.approx({"imbalance": 0.3, "communication": 0.1, "data": 0.02, "rest": 0.08})


def test_what_the_first_rank_does_between_steps_is_no_communication() -> None:
    accounts = Accounts(2)
    for _ in range(10):
        accounts.add(np.array([4.0, 4.0]), np.array([1.0, 3.0]))  # the second waits while the first writes for 2 s
    assert accounts.lost(seconds=70.0, share=0.5, rates=[1.0, 1.0], ordering=0.0)["communication"] == pytest.approx(
        1 / 7
    )


def test_ranks_that_leave_an_all_reduce_apart_pay_the_whole_of_it() -> None:
    accounts = Accounts(2)
    for step in range(10):
        late, early = 3.0, 1.0  # who left late the step before is the last to arrive
        accounts.add(np.array([8.0, 8.0]), np.array([late, early] if step % 2 else [early, late]))
    lost = accounts.lost(seconds=100.0, share=0.8, rates=[1.0, 1.0], ordering=0.0)
    assert lost["communication"] == pytest.approx(0.2)


def test_what_a_quick_rank_does_besides_is_not_taken_from_the_all_reduce() -> None:
    accounts = Accounts(2)
    for _ in range(10):
        accounts.add(np.array([4.0, 8.0]), np.array([4.0, 1.0]))  # the first has 1 s of other work, beside the wait
    lost = accounts.lost(seconds=90.0, share=0.5, rates=[1.0, 1.0], ordering=0.0)
    assert lost["communication"] == pytest.approx(1 / 9)


def test_an_all_reduce_is_known_a_step_later_which_changes_little() -> None:
    accounts = Accounts(2)
    for step in range(30):
        accounts.add(np.array([4.0, 8.0]), np.array([4.1, 0.1]) if step else np.zeros(2))
    lost = accounts.lost(seconds=30 * 8.1, share=0.5, rates=[1.0, 1.0], ordering=0.0)
    assert lost["communication"] == pytest.approx(0.1 / 8.1, rel=0.05)
