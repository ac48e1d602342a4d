"""Sparse gradients of large tables of vectors: only the rows that a batch touches.

Such a gradient is a sparse tensor (torch.sparse_coo_tensor) with each touched row once, in any order. Do not use
`nn.Embedding` for a large table: its gradient is as large as the table, or has one row per occurrence of an id.

A model takes the mean of the table rows of each text, so all rows of a text have the same gradient. Pieces and ranks
therefore exchange the gradient of each mean and the ids of its rows (`FactoredGradient`). That is a tenth of the data
of the touched rows. The gradients of each row are summed once, after the exchange. On a CPU, loops in numba compute
(row_kernels.py, imported at the first use); on other devices, torch computes.
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
"""Number of values in a piece, which one GPU thread sums sequentially. For example, 65,536 values with the same id are
256 pieces; one thread then adds the 256 sums."""


class TouchedRows(NamedTuple):
    """Sparse gradient of a table: distinct row numbers `rows` (m,) int64, and their gradients `values` (m, columns)."""

    rows: Tensor
    values: Tensor


class FactoredGradient(NamedTuple):
    """Gradient of a table in factored form, as the gradients of n means of table rows.

    `gradients` (n, columns): the gradient of each mean. `lengths` (n,) int64: the number of rows in each mean, at least
    1. `ids` (t,) int32: the row numbers of all means, concatenated.
    """

    ids: Tensor
    lengths: Tensor
    gradients: Tensor


_collected: ContextVar[list[tuple[Tensor, FactoredGradient]] | None] = ContextVar("_collected", default=None)


@contextmanager
def collect_gradients() -> Iterator[list[tuple[Tensor, FactoredGradient]]]:
    """Collect the factored table gradients of all calls of `mean_of_rows` in this block.

    The backward pass appends each table and its factored gradient to the yielded list. The table's own gradient then
    has no rows.
    """
    collected: list[tuple[Tensor, FactoredGradient]] = []
    before = _collected.set(collected)
    try:
        yield collected
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
    """Return the sum of one or more gradients of the same table."""
    return FactoredGradient(*map(torch.cat, zip(*parts, strict=True))) if len(parts) > 1 else parts[0]


def compact(factored: FactoredGradient) -> FactoredGradient:
    """Return the same gradient with one entry per distinct row. This form is smaller for tables with few columns."""
    touched = sum_touched_rows(factored)
    return FactoredGradient(touched.rows.int(), torch.ones_like(touched.rows), touched.values)


def sum_touched_rows(factored: FactoredGradient) -> TouchedRows:
    """Return the gradient of each distinct row. The gradients of a row are added in the order of the means."""
    if computed_by_numba(factored.ids):
        sums = kernels().sum_rows(factored.ids.numpy(), factored.lengths.numpy(), factored.gradients.numpy())
        return TouchedRows(*map(torch.from_numpy, sums))
    shares = factored.gradients / factored.lengths[:, None]
    return sums_by_id(factored.ids, shares, _segments(factored.lengths.cumsum(0), len(factored.ids)))


def sums_by_id(ids: Tensor, values: Tensor, places: Tensor | None = None) -> TouchedRows:
    """Return the sum of the values of each distinct id in `ids` (t,), computed by torch.

    The value of `ids[i]` is `values[i]` or, with `places` (t,), `values[places[i]]`; `values` has shape (t, columns) or
    (n, columns). Values are added in order, piece by piece, so that ranks that add the same values get bit-identical
    sums.

    Do not use `index_add_` for repeated rows: on a GPU, its order of additions varies. Do not sum all values of an id
    in one segment: a frequent word has tens of thousands of values, which a single thread would add.
    """
    order = torch.argsort(ids, stable=True)
    distinct, counts = torch.unique_consecutive(ids[order], return_counts=True)
    pieces = (counts + _PIECE - 1) // _PIECE
    lengths = counts.new_full((int(pieces.sum()),), _PIECE)
    lengths[pieces.cumsum(0) - 1] = counts - _PIECE * (pieces - 1)
    of_pieces = _sums(values[order if places is None else places[order]], lengths)
    return TouchedRows(distinct.long(), _sums(of_pieces, pieces))


def new_table(rows: int, columns: int, like: Tensor | None = None) -> Tensor:
    """Return an uninitialised table (rows, columns) with the type and device of `like` (default: float32 on the CPU).

    On a CPU, numpy allocates the table, because numpy asks the system for huge pages, and torch does not. With small
    pages, a rank that gathers distant rows would mostly wait for address translation.
    """
    like = torch.empty(0) if like is None else like.detach()
    if not like.is_cpu:
        return like.new_empty((rows, columns))
    return torch.from_numpy(np.empty((rows, columns), like[:0].numpy().dtype))


def mean_of_rows(table: Tensor, ids: Tensor, ends: Tensor) -> Tensor:
    """Return the mean (n, columns) of the rows of `table` (rows, columns) for each segment of the row numbers `ids`
    (t,).

    `ends` (n,) int64: the end of each segment in `ids`; each segment has at least one id. The backward pass gives the
    table a sparse gradient.
    """
    means: Tensor = _MeanOfRows.apply(table, ids, ends)  # type: ignore[no-untyped-call]
    return means


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
    """Return the index of each id's segment (ids,). `ends`: the end of each segment. `ids`: the number of ids."""
    return torch.searchsorted(ends, torch.arange(ids, device=ends.device), right=True)


def _sums(values: Tensor, lengths: Tensor) -> Tensor:
    """Return the sums (m, columns) of segments of `values` (t, columns) with `lengths` (m,), each at least 1."""
    if not len(lengths):
        return values.new_zeros((0, values.shape[1]))
    sums: Tensor = torch.segment_reduce(values, "sum", lengths=lengths, unsafe=True)
    return sums


def _lengths(ends: Tensor) -> Tensor:
    """Return the length (n, 1) of each segment."""
    return torch.diff(ends, prepend=ends.new_zeros(1))[:, None]


def computed_by_numba(tensor: Tensor) -> bool:
    """Return whether numba's loops (row_kernels.py) process this tensor, which they do for all tensors on a CPU."""
    return tensor.is_cpu


@cache
def kernels() -> Any:
    """Return the module of loops for CPUs (row_kernels.py).

    The module is cached, because an import statement at each step would take longer than a loop.
    """
    from trainer.computing import (
        row_kernels,
    )  # imported here because numba loads slowly, and GPU machines lack it

    return row_kernels
