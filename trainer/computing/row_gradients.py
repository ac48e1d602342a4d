"""Gradients of large tables of vectors: those of the rows that a batch touches, and no others.

Such a gradient is a sparse tensor (torch.sparse_coo_tensor) with each touched row once, in any order. Do not use
`nn.Embedding` for a large table: its gradient is as large as the table, or has a row for each occurrence of an id. On a
CPU numba computes (row_kernels.py), and is imported at the first use; elsewhere torch.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor


class TouchedRows(NamedTuple):
    """The content of a gradient: `rows` (m,) int64, which differ, and their `values` (m, columns)."""

    rows: Tensor
    values: Tensor


def touched_rows(gradient: Tensor) -> TouchedRows:
    """The content of a gradient of these."""
    return TouchedRows(gradient._indices()[0], gradient._values())


def row_gradient(table: Tensor, touched: TouchedRows) -> Tensor:
    """The gradient of a table (rows, columns) with this content."""
    return torch.sparse_coo_tensor(touched.rows[None], touched.values, table.shape, check_invariants=False)


def no_rows(table: Tensor) -> TouchedRows:
    """The content of a gradient that is zero everywhere."""
    return TouchedRows(
        torch.zeros(0, dtype=torch.int64, device=table.device), table.detach().new_zeros((0, table.shape[1]))
    )


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


def add_up(parts: Sequence[TouchedRows]) -> TouchedRows:
    """The sum of gradients of one table; sums of each row are in the order of the parts."""
    if len(parts) == 1:
        return parts[0]
    if computed_by_numba(parts[0].values):
        return _merged(parts)
    distinct, numbers = numbered(torch.cat([part.rows for part in parts]))
    sums = parts[0].values.new_zeros((len(distinct), parts[0].values.shape[1]))
    return TouchedRows(distinct, sums.index_add_(0, numbers, torch.cat([part.values for part in parts])))


def _merged(parts: Sequence[TouchedRows]) -> TouchedRows:
    """The same, in one pass over the parts."""
    most = sum(len(part.rows) for part in parts)
    values = parts[0].values.numpy()
    distinct, sums = np.empty(most, np.int64), np.empty((most, values.shape[1]), values.dtype)
    slots, known = _slots(most), 0
    for part in parts:
        known = kernels().merge_rows(part.rows.numpy(), part.values.numpy(), slots, distinct, sums, known)
    return TouchedRows(torch.from_numpy(distinct[:known]), torch.from_numpy(sums[:known]))


def numbered(ids: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct ids (m,) int64 of `ids` (t,), and for each id which of them it is, (t,)."""
    if not computed_by_numba(ids):
        distinct, numbers = torch.unique(ids, return_inverse=True)
        return distinct.long(), numbers
    found, which = np.empty(len(ids), np.int64), np.empty(len(ids), np.int32)
    known = kernels().number_ids(ids.numpy(), _slots(len(ids)), found, which)
    return torch.from_numpy(found[:known]), torch.from_numpy(which)


def _slots(ids: int) -> Any:
    """An empty hash table for so many ids, as the loops use it."""
    return np.zeros(1 << max(4, (2 * ids - 1).bit_length()), np.int32)


class _MeanOfRows(torch.autograd.Function):
    """`mean_of_rows`. Distinct rows are copied side by side first: what is far apart is then read once."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, ids: Tensor, ends: Tensor) -> Tensor:
        distinct, numbers = numbered(ids)
        ctx.table, ctx.distinct = table, distinct
        ctx.save_for_backward(numbers, ends)
        out = table.new_zeros((len(ends), table.shape[1]))
        if computed_by_numba(table):
            values = np.empty((len(distinct), table.shape[1]), out.numpy().dtype)
            kernels().gather_rows(table.detach().numpy(), distinct.numpy(), values)
            kernels().mean_rows(values, numbers.numpy(), ends.numpy(), out.numpy())
            return out
        return out.index_add_(0, _segments(ends, len(ids)), table.detach()[ids]) / _lengths(ends)

    @staticmethod
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor, None, None]:
        numbers, ends = ctx.saved_tensors
        values = gradients.new_zeros((len(ctx.distinct), gradients.shape[1]))
        if computed_by_numba(gradients):
            own = np.array(gradients.numpy())  # autograd's, which nobody else may change
            kernels().spread_means(own, numbers.numpy(), ends.numpy(), values.numpy())
        else:
            values.index_add_(0, numbers, (gradients / _lengths(ends))[_segments(ends, len(numbers))])
        return row_gradient(ctx.table, TouchedRows(ctx.distinct, values)), None, None


def _segments(ends: Tensor, ids: int) -> Tensor:
    """(t,): the segment of each of so many ids."""
    return torch.searchsorted(ends, torch.arange(ids, device=ends.device), right=True)


def _lengths(ends: Tensor) -> Tensor:
    """(n, 1): the length of each segment."""
    return torch.diff(ends, prepend=ends.new_zeros(1))[:, None]


def computed_by_numba(tensor: Tensor) -> bool:
    """Whether the loops for CPUs (row_kernels.py) compute on such a tensor."""
    return tensor.is_cpu


def kernels() -> Any:
    """The loops for CPUs (row_kernels.py)."""
    from trainer.computing import row_kernels  # here, because numba takes long to load, and machines with GPUs lack it

    return row_kernels
