"""What a rank sends for a step."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.computing.row_gradients import Means
from trainer.distributed.exchange import Traffic, bytes_a_step, bytes_of


@given(chunk=st.integers(1, 1000), ranks=st.integers(1, 16))
def test_a_ring_sends_all_but_one_part_of_a_sum_twice(chunk: int, ranks: int) -> None:
    traffic = Traffic()
    traffic.add_sum(chunk * ranks, ranks)
    assert traffic.bytes == 2 * chunk * (ranks - 1)


def test_bytes_are_those_of_all_ranks_over_the_steps_that_they_took_by_themselves() -> None:
    of_ranks = [{"bytes": 100.0, "steps": 2}, {"bytes": 50.0, "steps": 1}]
    assert bytes_a_step(of_ranks, local_steps=5) == 10.0
    assert bytes_a_step([{"bytes": 0.0, "steps": 0}], local_steps=1) is None


def test_the_gradients_of_rows_go_with_their_ids_and_lengths() -> None:
    own = Means(torch.zeros(7, dtype=torch.int32), torch.ones(3, dtype=torch.int64), torch.zeros(3, 10))
    assert bytes_of(own) == 7 * 4 + 3 * 8 + 3 * 10 * 4
