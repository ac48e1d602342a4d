"""What ranks tell each other about the gradients of large tables."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.computing.row_gradients import Means
from trainer.distributed.exchange import counts_of, of_counts


@given(ids=st.integers(0, 1 << 36), means=st.integers(0, (1 << 24) - 1))
def test_numbers_of_ids_and_means_arrive_though_they_are_sent_in_float32(ids: int, means: int) -> None:
    empty = torch.empty(1)
    own = Means(empty.expand(ids) if ids else empty[:0], empty.expand(means) if means else empty[:0], empty[:0])
    arrived = torch.tensor(counts_of(own), dtype=torch.float32).long().tolist()
    assert of_counts(arrived) == (ids, means)
