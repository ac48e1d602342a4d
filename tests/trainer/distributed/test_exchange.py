"""Gradient exchange: ranks with unequal shares get the gradients of one process. Lost rows and bytes are counted."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.distributed as dist
from hypothesis import example, given
from hypothesis import strategies as st

from tests.trainer.runs import finish
from trainer.clock import StepTimer
from trainer.computing.row_gradients import FactoredGradient, zero_gradient
from trainer.distributed import collectives, exchange
from trainer.distributed.exchange import (
    GradientExchange,
    StepReport,
    Traffic,
    bytes_a_step,
    decode_counts,
    encode_counts,
    gradient_bytes,
)
from trainer.distributed.ranks import join_process_group
from trainer.rank_errors import LostError


@pytest.fixture(scope="module")
def deviations(launch, tmp_path_factory):
    result = tmp_path_factory.mktemp("gradients") / "deviations.json"
    finish(launch(3, Path(__file__).with_name("gradients.py"), result))
    return json.loads(result.read_text())


@pytest.mark.parametrize("gradient", ["whole", "clipped"])
@pytest.mark.parametrize("split", ["7/41/16", "1/62/1", "0/40/24", "64/0/0"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("float64", 1e-14)])
def test_the_gradient_of_unequal_shares_equals_that_of_one_process(deviations, dtype, tolerance, split, gradient):
    assert deviations[f"{dtype} {split} {gradient}"] < tolerance


def test_lost_ranks_are_noticed_while_the_host_waits_for_message_sizes(monkeypatch, messages):
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        model, timer = torch.nn.Embedding(5, 2), StepTimer()
        table = model.weight
        found = GradientExchange(model, [], timer=timer, sparse_tables=[table])
        found._ranks, found._is_brief = 2, False
        monkeypatch.setattr(exchange, "_copy_to_host", lambda numbers: (numbers, SimpleNamespace(query=lambda: False)))
        failing = SimpleNamespace(get_error=lambda: SimpleNamespace(name="TIMEOUT"))
        monkeypatch.setattr(collectives, "backend_of", lambda _device: failing)
        timer.begin(1)
        computed = {"touched": [], "table_gradients": [zero_gradient(table)], "loss": torch.zeros(()), "rows": 1}
        with messages.raises(LostError):
            found.reduce(step=7, size=1, **computed, stop=False, save=False)
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_sent_gradients_are_counted_once_for_each_other_rank(monkeypatch, ranks):
    with join_process_group(1):
        model = torch.nn.Embedding(5, 2)
        found = GradientExchange(model, [], timer=StepTimer(), sparse_tables=[model.weight])
    found._ranks = ranks
    monkeypatch.setattr(exchange, "gather_gradients", lambda own, _counts, _rank: own)
    own = FactoredGradient(torch.zeros(3, dtype=torch.int32), torch.ones(3, dtype=torch.int64), torch.zeros(3, 2))
    found._gather([own], torch.zeros(3 * ranks))
    assert found.traffic.bytes == (ranks - 1) * gradient_bytes(own)


def report(shares: list[int], size: int) -> StepReport:
    """Return the report of a step after shares with these rows were sent in float32."""
    none, computed = np.zeros(len(shares), np.int64), np.array(shares, np.float32).astype(np.int64)
    of_ranks = {"rows": none, "seconds": np.zeros(len(shares)), "pieces": none, "computed": computed}
    return StepReport(step=0, size=size, loss=0.5, norm=1.0, stop=False, save=False, **of_ranks)


@example(shares=[2**24 + 1] * 3)
@example(shares=[2**25 + 2, 1])
@given(shares=st.lists(st.integers(0, 2**40), min_size=1, max_size=64))
def test_complete_shares_of_any_size_are_recognised(shares):
    assert report(shares, sum(shares)).is_complete


@given(st.lists(st.integers(1, 2**18), min_size=1, max_size=63), st.integers(0, 62), st.sampled_from([-1, 1]))
def test_a_missing_or_repeated_row_is_recognised(shares, rank, off):
    size = sum(shares)
    shares[rank % len(shares)] += off
    assert not report(shares, size).is_complete


@given(ids=st.integers(0, 1 << 36), table_gradients=st.integers(0, (1 << 24) - 1))
def test_counts_of_ids_and_texts_survive_float32(ids, table_gradients):
    empty = torch.empty(1)
    own = FactoredGradient(
        empty.expand(ids) if ids else empty[:0],
        empty.expand(table_gradients) if table_gradients else empty[:0],
        empty[:0],
    )
    arrived = torch.tensor(encode_counts(own), dtype=torch.float32).long().tolist()
    assert decode_counts(arrived) == (ids, table_gradients)


@given(chunk=st.integers(1, 1000), ranks=st.integers(1, 16))
def test_a_ring_all_reduce_sends_all_but_one_part_twice(chunk, ranks):
    traffic = Traffic()
    traffic.add_sum(chunk * ranks, ranks)
    assert traffic.bytes == 2 * chunk * (ranks - 1)


def test_bytes_a_step_are_ids_lengths_and_gradients_of_all_ranks_over_their_own_steps():
    own = FactoredGradient(torch.zeros(7, dtype=torch.int32), torch.ones(3, dtype=torch.int64), torch.zeros(3, 10))
    assert gradient_bytes(own) == 7 * 4 + 3 * 8 + 3 * 10 * 4
    of_ranks = [{"bytes": 100.0, "steps": 2}, {"bytes": 50.0, "steps": 1}]
    assert bytes_a_step(of_ranks, local_steps=5) == 10.0
    assert bytes_a_step([{"bytes": 0.0, "steps": 0}], local_steps=1) is None
