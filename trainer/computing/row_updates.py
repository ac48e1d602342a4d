"""Steps of the optimisers on the rows of a table that have a gradient: a step costs what the batch touches.

Rows without a gradient stay as they are. For SGD and Adagrad the usual step leaves them, too; but Adagrad has one rate
for a whole row here, and not one for each number, so that its state is a column. Adam is *lazy* here: its moments,
which usually shrink at each step and go on moving the weights, stand still until the row has a gradient again; the
correction for the first steps counts all steps, as torch.optim.SparseAdam does.

At a rate of 0, and with `learns=False`, a step does the same work and changes nothing: so a rank's speed is measured
without a copy of the table.
"""

import math
from typing import Any

from torch import Tensor

from trainer.computing.row_gradients import TouchedRows, computed_by_numba, kernels

ADAM_KEEPS = 0.9, 0.999
"""What Adam's moments keep of themselves at a step (Kingma and Ba 2015)."""
ADAM_TINY, ADAGRAD_TINY = 1e-8, 1e-10


def sgd(table: Tensor, touched: TouchedRows, rate: float) -> None:
    """A step of SGD without momentum on a table (rows, columns)."""
    if computed_by_numba(table):
        kernels().sgd_rows(*_arrays(table, touched.rows, touched.values), _numbers(table, rate)[0])
    else:
        table.index_add_(0, touched.rows, touched.values, alpha=-rate)


def adagrad(
    table: Tensor, squares: Tensor, touched: TouchedRows, rate: float, *, learns: bool, row_rates: Tensor | None = None
) -> None:
    """A step of Adagrad (Duchi et al. 2011) with one rate for each row: `squares` (rows, 1) are the sums of the rows'
    mean squared gradients. `row_rates` (rows, 1): what the rate of each row is multiplied by."""
    learnt = 1.0 if learns else 0.0
    rows, gradients = touched
    if computed_by_numba(table):
        rates = None if row_rates is None else row_rates.numpy()
        numbers = _numbers(table, rate, learnt, ADAGRAD_TINY)
        kernels().adagrad_rows(*_arrays(table, squares, rows, gradients), rates, *numbers)
        return
    square = squares[rows].add_(gradients.square().mean(1, keepdim=True), alpha=learnt)
    squares[rows] = square
    gradients = gradients if row_rates is None else gradients * row_rates[rows]
    table.index_add_(0, rows, gradients / square.sqrt_().add_(ADAGRAD_TINY), alpha=-rate)


def adam(
    table: Tensor, first: Tensor, second: Tensor, touched: TouchedRows, rate: float, *, step: int, learns: bool
) -> None:
    """A step of lazy Adam, the run's step number `step` (from 1), with the moments `first` and `second` (rows,
    columns)."""
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
    """The numbers in the type of the table: numba would compute in a wider one otherwise."""
    return tuple(map(table.detach().numpy().dtype.type, numbers))
