"""Optimiser steps on the touched rows of a table: their cost depends only on the number of touched rows.

Rows without a gradient do not change. With SGD and Adagrad, a dense step would not change them either. Adagrad has one
rate per row here instead of one per number, so its state has a single column. Adam is *lazy* here. In a dense step, its
moments would decay and would move the weights of all rows. Here, the moments of a row are frozen until the row has a
gradient again. The bias correction counts all steps, as in torch.optim.SparseAdam.

With rate 0 and `learns=False`, a step does the same work without changing the table. So a rank's speed can be measured
without a copy of the table.
"""

import math
from typing import Any

from torch import Tensor

from trainer.computing.row_gradients import TouchedRows, computed_by_numba, kernels

ADAM_KEEPS = 0.9, 0.999
"""Decay rates of Adam's moments (Kingma and Ba 2015)."""
ADAM_TINY, ADAGRAD_TINY = 1e-8, 1e-10


def sgd(table: Tensor, touched: TouchedRows, rate: float) -> None:
    """Take a step of SGD without momentum on the touched rows of a table (rows, columns)."""
    if computed_by_numba(table):
        kernels().sgd_rows(*_arrays(table, touched.rows, touched.values), _numbers(table, rate)[0])
    else:
        table.index_add_(0, touched.rows, touched.values, alpha=-rate)


def adagrad(
    table: Tensor, squares: Tensor, touched: TouchedRows, rate: float, *, learns: bool, row_rates: Tensor | None = None
) -> None:
    """Take a step of Adagrad (Duchi et al. 2011) with one rate per row on the touched rows of a table (rows, columns).

    `squares` (rows, 1): for each row, the sum of its mean squared gradients. `row_rates` (rows, 1): a factor of each
    row's rate; None: no factors.
    """
    learned = 1.0 if learns else 0.0
    rows, gradients = touched
    if computed_by_numba(table):
        rates = None if row_rates is None else row_rates.numpy()
        numbers = _numbers(table, rate, learned, ADAGRAD_TINY)
        kernels().adagrad_rows(*_arrays(table, squares, rows, gradients), rates, *numbers)
        return
    square = squares[rows].add_(gradients.square().mean(1, keepdim=True), alpha=learned)
    squares[rows] = square
    gradients = gradients if row_rates is None else gradients * row_rates[rows]
    table.index_add_(0, rows, gradients / square.sqrt_().add_(ADAGRAD_TINY), alpha=-rate)


def adam(
    table: Tensor, first: Tensor, second: Tensor, touched: TouchedRows, rate: float, *, step: int, learns: bool
) -> None:
    """Take a step of lazy Adam on the touched rows of a table, with its moments `first` and `second` (rows, columns).

    `step`: the number of the step, from 1.
    """
    corrections = [1.0 - keep**step for keep in ADAM_KEEPS]
    keep_first, keep_second = ADAM_KEEPS if learns else (1.0, 1.0)
    rate, root_share = rate / corrections[0], 1.0 / math.sqrt(corrections[1])
    rows, gradients = touched
    if computed_by_numba(table):
        numbers = _numbers(table, rate, root_share, keep_first, keep_second, ADAM_TINY)
        kernels().adam_rows(*_arrays(table, first, second, rows, gradients), numbers[:2], numbers[2:4], numbers[4])
        return
    mean = first[rows].mul_(keep_first).add_(gradients, alpha=1.0 - keep_first)
    square = second[rows].mul_(keep_second).addcmul_(gradients, gradients, value=1.0 - keep_second)
    first[rows], second[rows] = mean, square
    table.index_add_(0, rows, mean / square.sqrt_().mul_(root_share).add_(ADAM_TINY), alpha=-rate)


def _arrays(*tensors: Tensor) -> list[Any]:
    return [tensor.detach().numpy() for tensor in tensors]


def _numbers(table: Tensor, *numbers: float) -> tuple[Any, ...]:
    """Return the numbers in the table's data type, because numba would compute in float64 with Python's numbers."""
    return tuple(map(table.detach().numpy().dtype.type, numbers))
