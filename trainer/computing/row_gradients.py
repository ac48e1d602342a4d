"""Sparse gradients of large tables of vectors: only the rows that a batch touches.

Such a gradient is a sparse tensor (torch.sparse_coo_tensor) with each touched row once, in any order. Do not use
`nn.Embedding` for a large table: its gradient is as large as the table, or has a row for each occurrence of an id.

All rows of a text have the same gradient, that of the mean of its rows. So pieces and ranks exchange the gradients of
the means and the ids of their rows (`FactoredGradient`): ten times less data than the touched rows. The rows are summed
once, at the end. On a CPU, numba computes (row_kernels.py), and is imported at the first use; elsewhere, torch
computes.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

_PIECE = 256
"""Values that a GPU thread sums sequentially. 65,536 values with one id are 256 pieces, and their sums are added in as
many steps."""


class TouchedRows(NamedTuple):
    """Rows and values of a sparse gradient: distinct `rows` (m,) int64, and their `values` (m, columns)."""

    rows: Tensor
    values: Tensor


class FactoredGradient(NamedTuple):
    """Gradient of a table in factored form: gradients of means of its rows.

    `gradients` (n, columns): the gradient of each mean. `lengths` (n,) int64: the number of rows in each mean, at least
    1. `ids` (t,) int32: the rows of all means, concatenated.
    """

    ids: Tensor
    lengths: Tensor
    gradients: Tensor


_collected: ContextVar[list[tuple[Tensor, FactoredGradient]] | None] = ContextVar("_collected", default=None)


@contextmanager
def collect_gradients() -> Iterator[list[tuple[Tensor, FactoredGradient]]]:
    """Collect the table gradients of `mean_of_rows` in this block.

    In the backward pass, their tables get a gradient without rows. Instead, each table and its factored gradient are
    appended to the yielded list.
    """
    found: list[tuple[Tensor, FactoredGradient]] = []
    before = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(before)


def touched_rows(gradient: Tensor) -> TouchedRows:
    return TouchedRows(gradient._indices()[0], gradient._values())


def row_gradient(table: Tensor, touched: TouchedRows) -> Tensor:
    return torch.sparse_coo_tensor(touched.rows[None], touched.values, table.shape, check_invariants=False)


def zero_gradient(table: Tensor) -> FactoredGradient:
    """Return a zero gradient of a table."""
    ids = torch.zeros(0, dtype=torch.int32, device=table.device)
    return FactoredGradient(ids, ids.long(), table.detach().new_zeros((0, table.shape[1])))


def concatenate(parts: Sequence[FactoredGradient]) -> FactoredGradient:
    """Return the sum of gradients of one table."""
    return FactoredGradient(*map(torch.cat, zip(*parts, strict=True))) if len(parts) > 1 else parts[0]


def compact(factored: FactoredGradient) -> FactoredGradient:
    """Return the same gradient with one entry per distinct row. For narrow tables, that is smaller."""
    found = sum_touched_rows(factored)
    return FactoredGradient(found.rows.int(), torch.ones_like(found.rows), found.values)


def sum_touched_rows(factored: FactoredGradient) -> TouchedRows:
    """Return the rows of a gradient. Each row's sum is taken in the order of the means."""
    if computed_by_numba(factored.ids):
        found = kernels().sum_rows(factored.ids.numpy(), factored.lengths.numpy(), factored.gradients.numpy())
        return TouchedRows(*map(torch.from_numpy, found))
    shares = factored.gradients / factored.lengths[:, None]
    return sums_by_id(factored.ids, shares, _segments(factored.lengths.cumsum(0), len(factored.ids)))


def sums_by_id(ids: Tensor, values: Tensor, places: Tensor | None = None) -> TouchedRows:
    """Return the sums of `values` with equal `ids` (t,), with torch.

    The value of an id is the one at the same index of `values` (t, columns), or at its index `places` (t,) in `values`
    (n, columns). Each sum is taken in order, piece by piece, so that all ranks that add the same values get
    bit-identical results.

    Do not use `index_add_` for repeated rows: on a GPU, its order of additions varies. Do not sum all values of an id
    in one segment: a frequent word has tens of thousands, which one thread would add.
    """
    order = torch.argsort(ids, stable=True)
    distinct, counts = torch.unique_consecutive(ids[order], return_counts=True)
    pieces = (counts + _PIECE - 1) // _PIECE
    lengths = counts.new_full((int(pieces.sum()),), _PIECE)
    lengths[pieces.cumsum(0) - 1] = counts - _PIECE * (pieces - 1)
    of_pieces = _sums(values[order if places is None else places[order]], lengths)
    return TouchedRows(distinct.long(), _sums(of_pieces, pieces))


def new_table(rows: int, columns: int, like: Tensor | None = None) -> Tensor:
    """Return an uninitialised table (rows, columns) with the type and device of `like`; default: float32 on the CPU.

    On a CPU, numpy allocates it: numpy asks the system for huge pages, and torch does not. With small pages, a rank
    that gathers distant rows would mostly wait for address translation.
    """
    like = torch.empty(0) if like is None else like.detach()
    if not like.is_cpu:
        return like.new_empty((rows, columns))
    return torch.from_numpy(np.empty((rows, columns), like[:0].numpy().dtype))


def mean_of_rows(table: Tensor, ids: Tensor, ends: Tensor) -> Tensor:
    """Return the mean (n, columns) of the rows of `table` (rows, columns) in each segment of `ids` (t,).

    Segments end at `ends` (n,) int64, and have at least one id. The table gets a sparse gradient.
    """
    found: Tensor = _MeanOfRows.apply(table, ids, ends)  # type: ignore[no-untyped-call]
    return found


class _MeanOfRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, ids: Tensor, ends: Tensor) -> Tensor:
        ctx.table, ctx.collected = table, _collected.get()
        ctx.save_for_backward(ids, ends)
        if computed_by_numba(table):
            out = table.new_zeros((len(ends), table.shape[1]))
            kernels().mean_rows(table.detach().numpy(), ids.numpy(), ends.numpy(), out.numpy())
            return out
        lengths = _lengths(ends)
        return _sums(table.detach()[ids], lengths[:, 0]) / lengths

    @staticmethod
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor, None, None]:
        ids, ends = ctx.saved_tensors
        factored = FactoredGradient(ids, _lengths(ends)[:, 0], gradients)
        if ctx.collected is not None:
            ctx.collected.append((ctx.table, factored))
            factored = zero_gradient(ctx.table)
        return row_gradient(ctx.table, sum_touched_rows(factored)), None, None


def _segments(ends: Tensor, ids: int) -> Tensor:
    """Return the segment index (t,) of each of `ids` ids."""
    return torch.searchsorted(ends, torch.arange(ids, device=ends.device), right=True)


def _sums(values: Tensor, lengths: Tensor) -> Tensor:
    """Return the sums (m, columns) of segments of `values` (t, columns) with `lengths` (m,), each at least 1."""
    if not len(lengths):
        return values.new_zeros((0, values.shape[1]))
    found: Tensor = torch.segment_reduce(values, "sum", lengths=lengths, unsafe=True)
    return found


def _lengths(ends: Tensor) -> Tensor:
    """Return the length (n, 1) of each segment."""
    return torch.diff(ends, prepend=ends.new_zeros(1))[:, None]


def computed_by_numba(tensor: Tensor) -> bool:
    """Return whether the loops for CPUs (row_kernels.py) process this tensor."""
    return tensor.is_cpu


@cache
def kernels() -> Any:
    """Return the loops for CPUs (row_kernels.py). An import statement at each step would take longer than a loop."""
    from trainer.computing import (
        row_kernels,
    )  # here: numba loads slowly, and GPU machines lack it

    return row_kernels
