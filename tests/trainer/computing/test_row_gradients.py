"""Sparse gradients, and optimiser steps on their rows, equal those of torch."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from trainer.computing import row_gradients, row_updates
from trainer.computing.optimiser import Optimiser
from trainer.computing.row_gradients import (
    FactoredGradient,
    TouchedRows,
    collect_gradients,
    concatenate,
    mean_of_rows,
    sum_touched_rows,
    touched_rows,
    zero_gradient,
)
from trainer.options.optimisation_options import OptimisationOptions

ROWS, COLUMNS = 40, 3
IDS = st.integers(0, ROWS - 1)
SEGMENTS = st.lists(st.lists(IDS, min_size=1, max_size=9), min_size=1, max_size=6)


@pytest.fixture(params=["numba", "torch"], autouse=True)
def computed_by(request, monkeypatch):
    """Run the test with numba and with torch, as on a GPU."""
    for module in (row_gradients, row_updates):
        monkeypatch.setattr(module, "computed_by_numba", lambda _tensor: request.param == "numba")


def some_table(seed: int = 0) -> Tensor:
    return torch.randn((ROWS, COLUMNS), generator=torch.Generator().manual_seed(seed))


def dense(touched: TouchedRows) -> Tensor:
    return torch.zeros(ROWS, COLUMNS).index_add_(0, touched.rows, touched.values)


@given(segments=SEGMENTS)
def test_means_and_their_gradient_equal_those_of_an_embedding_bag(segments):
    ids = torch.tensor([each for segment in segments for each in segment], dtype=torch.int32)
    lengths = torch.tensor([len(segment) for segment in segments])
    ours, theirs = nn.Parameter(some_table()), nn.Parameter(some_table())
    weights = torch.randn((len(segments), COLUMNS), generator=torch.Generator().manual_seed(1))
    found = mean_of_rows(ours, ids, lengths.cumsum(0))
    expected = F.embedding_bag(ids.long(), theirs, lengths.cumsum(0) - lengths, mode="mean")
    torch.testing.assert_close(found, expected)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    touched = touched_rows(ours.grad)
    assert sorted(touched.rows.tolist()) == sorted(set(ids.tolist()))
    torch.testing.assert_close(dense(touched), theirs.grad)


@given(parts=st.lists(SEGMENTS, min_size=1, max_size=3))
def test_joined_factored_gradients_are_the_sum_of_gradients(parts):
    collected, expected = [], torch.zeros(ROWS, COLUMNS)
    for number, segments in enumerate(parts):
        ids = torch.tensor([each for segment in segments for each in segment], dtype=torch.int32)
        ends = torch.tensor([len(segment) for segment in segments]).cumsum(0)
        weights = torch.randn((len(segments), COLUMNS), generator=torch.Generator().manual_seed(number))
        apart, together = nn.Parameter(some_table()), nn.Parameter(some_table())
        (mean_of_rows(apart, ids, ends) * weights).sum().backward()
        with collect_gradients() as found:
            loss = (mean_of_rows(together, ids, ends) * weights).sum()
        loss.backward()
        assert len(touched_rows(together.grad).rows) == 0
        ((table, table_gradients),) = found
        assert table is together
        collected.append(table_gradients)
        expected += apart.grad.to_dense()
    summed = sum_touched_rows(concatenate(collected))
    assert len(set(summed.rows.tolist())) == len(summed.rows)
    torch.testing.assert_close(dense(summed), expected)


class NoRepeats(TorchDispatchMode):
    """Refuses additions to repeated rows, which have no deterministic order on a GPU."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket in (torch.ops.aten.index_add_, torch.ops.aten.index_add, torch.ops.aten.scatter_add_):
            assert len(args[2].unique()) == len(args[2])
        return func(*args, **(kwargs or {}))


@given(segments=SEGMENTS)
def test_rows_are_summed_in_order_by_numba_and_torch(segments):
    ids = torch.tensor([each for segment in segments for each in segment], dtype=torch.int32)
    lengths = torch.tensor([len(segment) for segment in segments])
    gradients = torch.randn((len(segments), COLUMNS), generator=torch.Generator().manual_seed(2))
    expected: dict[int, Tensor] = {}
    for segment, share in zip(segments, gradients / lengths[:, None], strict=True):
        for row in segment:
            expected[row] = expected[row] + share if row in expected else share
    with NoRepeats():
        found = row_gradients.sums_by_id(
            ids, gradients / lengths[:, None], torch.arange(len(lengths)).repeat_interleave(lengths)
        )
        by_either = sum_touched_rows(FactoredGradient(ids, lengths, gradients))
        mean_of_rows(some_table(), ids, lengths.cumsum(0))
    assert found.rows.tolist() == sorted(expected)
    assert all(value.equal(expected[row]) for row, value in zip(found.rows.tolist(), found.values, strict=True))
    torch.testing.assert_close(dense(by_either), dense(found))


def test_values_of_a_frequent_id_are_summed_in_pieces(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    ids = torch.where(torch.rand(100_000, generator=generator) < 0.5, 7, torch.arange(100_000)).int()
    values = torch.randn(len(ids), COLUMNS, generator=generator)
    most, reduce = [], torch.segment_reduce

    def noted(data, kind, *, lengths, unsafe):
        most.append(int(lengths.max()))
        return reduce(data, kind, lengths=lengths, unsafe=unsafe)

    monkeypatch.setattr(torch, "segment_reduce", noted)
    found = row_gradients.sums_by_id(ids, values)
    assert sum(most) < 500
    expected = torch.zeros(len(ids), COLUMNS, dtype=torch.float64).index_add_(0, ids.long(), values.double())
    torch.testing.assert_close(found.values, expected[found.rows].float(), rtol=1e-4, atol=1e-4)


class Table(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.vectors = nn.Parameter(some_table())
        self.others = nn.Parameter(torch.ones(2))


def config(kind: str) -> OptimisationOptions:
    return OptimisationOptions(optimiser=kind, momentum=0.9, word_rate=0.5)


PEERS: dict[str, Callable[[list[Tensor]], Any]] = {
    "sgd": lambda table: torch.optim.SGD(table, lr=0.05),
    "adam": lambda table: torch.optim.SparseAdam(table, lr=0.05),
}


@pytest.mark.parametrize("kind", PEERS)
def test_steps_on_touched_rows_equal_those_of_torch_even_after_a_resume(kind):
    model, peer = Table(), nn.Parameter(some_table())
    own, theirs = Optimiser(model, [], config(kind), sparse_tables=[model.vectors]), PEERS[kind]([peer])
    generator = torch.Generator().manual_seed(3)
    for number in range(12):
        if number == 6:
            saved, own = own.state(), Optimiser(model, [], config(kind), sparse_tables=[model.vectors])
            own.restore(saved)
        rows = torch.randperm(ROWS, generator=generator)[: 5 * (number % 3)]
        touched = TouchedRows(rows, torch.randn((len(rows), COLUMNS), generator=generator))
        model.vectors.grad = row_gradients.row_gradient(model.vectors, touched)
        model.others.grad = torch.ones(2)
        own.step(0.1)
        peer.grad = torch.sparse_coo_tensor(rows[None], touched.values, peer.shape, check_invariants=True).coalesce()
        theirs.step()
        # SparseAdam adds epsilon before the bias correction, and Adam after it.
        torch.testing.assert_close(model.vectors, peer, rtol=2e-6, atol=2e-5 if kind == "adam" else 1e-7)


@given(gradients=st.lists(st.tuples(IDS, st.floats(-2, 2, width=32)), max_size=9))
def test_adagrad_has_one_rate_per_row(gradients):
    model, table, sums = Table(), some_table(), torch.zeros(ROWS)
    own = Optimiser(model, [], config("adagrad"), sparse_tables=[model.vectors])
    for row, factor in gradients:
        gradient = factor * torch.arange(1.0, COLUMNS + 1)
        model.vectors.grad = row_gradients.row_gradient(model.vectors, TouchedRows(torch.tensor([row]), gradient[None]))
        model.others.grad = torch.ones(2)
        own.step(0.1)
        sums[row] += gradient.square().mean()
        table[row] -= 0.05 * gradient / (sums[row].sqrt() + 1e-10)
    torch.testing.assert_close(model.vectors.detach(), table, rtol=1e-4, atol=1e-5)
    assert own.state()["second.0"].shape == (ROWS, 1)


@pytest.mark.parametrize("kind", ["adagrad", *PEERS])
def test_a_rehearsal_changes_neither_a_sparse_table_nor_the_state_of_the_optimiser(kind):
    model, copied = Table(), Table()
    copied.vectors = model.vectors
    own = Optimiser(model, [], config(kind), sparse_tables=[model.vectors])
    for each in (own, own.rehearsal(copied), own.rehearsal(copied)):
        before = model.vectors.clone(), {name: tensor.clone() for name, tensor in own.state().items()}
        others = copied.others.clone()
        model.vectors.grad = row_gradients.row_gradient(
            model.vectors, TouchedRows(torch.tensor([7, 2]), torch.ones(2, 3))
        )
        model.others.grad = copied.others.grad = torch.ones(2)
        each.step(0.1)
        if each is not own:
            assert torch.equal(model.vectors, before[0])
            assert all(torch.equal(tensor, before[1][name]) for name, tensor in own.state().items())
            assert not torch.equal(copied.others, others)


def test_a_rank_without_rows_contributes_zero():
    some = FactoredGradient(torch.tensor([3, 5, 3], dtype=torch.int32), torch.tensor([2, 1]), torch.ones(2, COLUMNS))
    whole = sum_touched_rows(concatenate([zero_gradient(some_table()), some]))
    torch.testing.assert_close(dense(whole), dense(sum_touched_rows(some)))
