"""Gradients of large tables of vectors: those of the rows that a batch touches, and no others.

Such a gradient is a sparse tensor (torch.sparse_coo_tensor) with each touched row once, in any order. Do not use
`nn.Embedding` for a large table: its gradient is as large as the table, or has a row for each occurrence of an id.

All rows of a text have the same gradient, that of the mean of its rows. So what pieces and ranks have to add up is the
gradients of the means, and the ids of their rows (`Means`): ten times less than the rows that they touch. The rows are
found once, at the end. On a CPU numba computes (row_kernels.py), and is imported at the first use; elsewhere torch.
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
"""Values that a thread of a GPU adds up one after the other. 65,536 values with one id are 256 pieces, whose sums are
added up in as many steps."""


class TouchedRows(NamedTuple):
    """The content of a gradient: `rows` (m,) int64, which differ, and their `values` (m, columns)."""

    rows: Tensor
    values: Tensor


class Means(NamedTuple):
    """What a table's gradient is made of: `gradients` (n, columns) of means of rows, whose `ids` (t,) int32 are side by
    side, `lengths` (n,) int64 of them for each mean, at least one."""

    ids: Tensor
    lengths: Tensor
    gradients: Tensor


_collected: ContextVar[list[tuple[Tensor, Means]] | None] = ContextVar("_collected", default=None)


@contextmanager
def collected_means() -> Iterator[list[tuple[Tensor, Means]]]:
    """Means that `mean_of_rows` takes meanwhile give their tables a gradient of no rows in the backward pass. That adds
    to this list, for each of them, the table and what its gradient is made of."""
    found: list[tuple[Tensor, Means]] = []
    before = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(before)


def touched_rows(gradient: Tensor) -> TouchedRows:
    return TouchedRows(gradient._indices()[0], gradient._values())


def row_gradient(table: Tensor, touched: TouchedRows) -> Tensor:
    return torch.sparse_coo_tensor(touched.rows[None], touched.values, table.shape, check_invariants=False)


def no_means(table: Tensor) -> Means:
    """What a gradient that is zero everywhere is made of."""
    ids = torch.zeros(0, dtype=torch.int32, device=table.device)
    return Means(ids, ids.long(), table.detach().new_zeros((0, table.shape[1])))


def joined(parts: Sequence[Means]) -> Means:
    """What the sum of gradients of one table is made of."""
    return Means(*map(torch.cat, zip(*parts, strict=True))) if len(parts) > 1 else parts[0]


def compacted(means: Means) -> Means:
    """The same gradient, made of the sum of each row: of short rows that means have often that is less."""
    found = rows_of_means(means)
    return Means(found.rows.int(), torch.ones_like(found.rows), found.values)


def rows_of_means(means: Means) -> TouchedRows:
    """The rows of a gradient that is made of these means; sums of each row are in their order."""
    if computed_by_numba(means.ids):
        found = kernels().sum_rows(means.ids.numpy(), means.lengths.numpy(), means.gradients.numpy())
        return TouchedRows(*map(torch.from_numpy, found))
    shares = means.gradients / means.lengths[:, None]
    return sums_by_id(means.ids, shares, _segments(means.lengths.cumsum(0), len(means.ids)))


def sums_by_id(ids: Tensor, values: Tensor, places: Tensor | None = None) -> TouchedRows:
    """The sums of `values` (n, columns) with equal `ids` (t,), by torch: of an id's own value, or of the one at its
    place in `places` (t,). Each sum is taken in their order, a piece of them after the other, so that all ranks that
    add up the same have the same bits.

    Do not use `index_add_` where rows come several times: on a GPU it adds in the order in which its threads come. Nor
    add up all values of an id at once: a frequent word has tens of thousands, which one thread would add.
    """
    order = torch.argsort(ids, stable=True)
    distinct, counts = torch.unique_consecutive(ids[order], return_counts=True)
    pieces = (counts + _PIECE - 1) // _PIECE
    lengths = counts.new_full((int(pieces.sum()),), _PIECE)
    lengths[pieces.cumsum(0) - 1] = counts - _PIECE * (pieces - 1)
    of_pieces = _sums(values[order if places is None else places[order]], lengths)
    return TouchedRows(distinct.long(), _sums(of_pieces, pieces))


def new_table(rows: int, columns: int, like: Tensor | None = None) -> Tensor:
    """(rows, columns), not filled; of the type and on the device of `like`, or float32 in a CPU's memory.

    There it is numpy's: numpy asks the system for large pages, and torch does not. With small ones a rank would wait
    for the places of pages most of the time in which it collects rows that lie far apart.
    """
    like = torch.empty(0) if like is None else like.detach()
    if not like.is_cpu:
        return like.new_empty((rows, columns))
    return torch.from_numpy(np.empty((rows, columns), like[:0].numpy().dtype))


def mean_of_rows(table: Tensor, ids: Tensor, ends: Tensor) -> Tensor:
    """(n, columns): the mean of the rows of `table` (rows, columns) that each segment of `ids` (t,) names.

    Segments end at `ends` (n,) int64, and have at least one id. The table's gradient is one of touched rows.
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
        means = Means(ids, _lengths(ends)[:, 0], gradients)
        if ctx.collected is not None:
            ctx.collected.append((ctx.table, means))
            means = no_means(ctx.table)
        return row_gradient(ctx.table, rows_of_means(means)), None, None


def _segments(ends: Tensor, ids: int) -> Tensor:
    """(t,): the segment of each of so many ids."""
    return torch.searchsorted(ends, torch.arange(ids, device=ends.device), right=True)


def _sums(values: Tensor, lengths: Tensor) -> Tensor:
    """(m, columns): the sums of segments of `values` (t, columns), which have these `lengths` (m,), at least one."""
    if not len(lengths):
        return values.new_zeros((0, values.shape[1]))
    found: Tensor = torch.segment_reduce(values, "sum", lengths=lengths, unsafe=True)
    return found


def _lengths(ends: Tensor) -> Tensor:
    """(n, 1): the length of each segment."""
    return torch.diff(ends, prepend=ends.new_zeros(1))[:, None]


def computed_by_numba(tensor: Tensor) -> bool:
    """Whether the loops for CPUs (row_kernels.py) compute on such a tensor."""
    return tensor.is_cpu


@cache
def kernels() -> Any:
    """The loops for CPUs (row_kernels.py). An import statement at each step would take longer than a loop."""
    from trainer.computing import row_kernels  # here, because numba takes long to load, and machines with GPUs lack it

    return row_kernels
