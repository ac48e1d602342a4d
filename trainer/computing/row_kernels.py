"""Loops over rows of large tables, compiled by numba for CPUs; `row_gradients` and `row_updates` call them.

Touched rows are far apart in memory, so each loop prefetches rows some iterations ahead. Otherwise it would mostly wait
for memory. Call the functions with the same array types everywhere, because numba compiles each combination separately.
Inner loops use unsigned indices, so that numba generates no code for negative indices.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import int64, uint32, uint64
from numba.core import cgutils, types
from numba.extending import intrinsic

from common.compiled import compiled

_AHEAD = 16
"""Iterations between the prefetch and the use of a row; 8 to 32 take equally long."""
_SPREAD = 0x9E3779B1  # an odd multiplier for multiplicative hashing (Knuth, volume 3, section 6.4)


def _prefetching(_context, table, row):  # type: ignore[no-untyped-def]
    """Generate code that prefetches the first and the last number of `table[row]`, often in different cache lines."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        array = context.make_array(kind)(context, builder, arguments[0])
        zero = ir.Constant(ir.IntType(64), 0)
        columns = builder.extract_value(array.shape, 1)
        last = builder.sub(columns, ir.Constant(ir.IntType(64), 1))
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        prefetch = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
            builder.module, ir.FunctionType(ir.VoidType(), [byte, number, number, number]), "llvm.prefetch.p0"
        )
        for column in (zero, last):
            place = cgutils.get_item_pointer(  # type: ignore[no-untyped-call]
                context, builder, kind, array, [arguments[1], column], wraparound=False
            )
            # For writing, into all cache levels, as data (LLVM Language Reference, llvm.prefetch).
            flags = [ir.Constant(number, flag) for flag in (1, 3, 1)]
            builder.call(prefetch, [builder.bitcast(place, byte), *flags])
        return context.get_dummy_value()

    return types.void(table, row), generate


_prefetch: Any = intrinsic(_prefetching)


@compiled
def mean_rows(table: Any, ids: Any, ends: Any, out: Any) -> None:
    """Write the mean of the rows of `table` (rows, columns) for each segment of the row numbers `ids` (t,) to `out`.

    `out` (n, columns) must contain zeros. `ends` (n,): the end of each segment in `ids`; each segment has at least one
    id.
    """
    columns, begin, count = uint64(table.shape[1]), 0, len(ids)
    for segment in range(len(ends)):
        end = ends[segment]
        for at in range(begin, end):
            if at + _AHEAD < count:
                _prefetch(table, int64(ids[at + _AHEAD]))
            row = uint64(ids[uint64(at)])
            for column in range(columns):
                out[uint64(segment), column] += table[row, column]
        share = table.dtype.type(1.0) / table.dtype.type(end - begin)
        for column in range(columns):
            out[uint64(segment), column] *= share
        begin = end


@compiled
def sum_rows(ids: Any, lengths: Any, gradients: Any) -> Any:
    """Return the distinct ids (m,) int64, in order of first appearance, and the gradients (m, columns) of their rows.

    This is the backward pass of `mean_rows`. `lengths` (n,): the length of each segment of `ids` (t,). `gradients` (n,
    columns): the gradient of each segment's mean.
    """
    columns, count, size = uint64(gradients.shape[1]), len(ids), 16
    while size < 2 * count:
        size *= 2
    slots, mask = np.zeros(size, np.int32), uint32(size - 1)  # a hash table: 1 + the index of a distinct id, or 0
    distinct, numbers, known = np.empty(count, np.int64), np.empty(count, np.int32), 0
    for at in range(count):
        slot = (uint32(ids[at]) * uint32(_SPREAD)) & mask
        slot ^= (slot >> uint32(9)) & mask
        while slots[uint64(slot)] != 0 and distinct[uint64(slots[uint64(slot)] - 1)] != ids[at]:
            slot = (slot + uint32(1)) & mask
        if slots[uint64(slot)] == 0:
            distinct[known] = ids[at]
            known += 1
            slots[uint64(slot)] = known
        numbers[at] = slots[uint64(slot)] - 1
    sums, contribution, begin = (
        np.zeros((known, gradients.shape[1]), gradients.dtype),
        np.empty(gradients.shape[1], gradients.dtype),
        0,
    )
    for segment in range(len(lengths)):
        end = begin + lengths[segment]
        share = gradients.dtype.type(1.0) / gradients.dtype.type(lengths[segment])
        for column in range(columns):
            contribution[column] = share * gradients[uint64(segment), column]
        for at in range(begin, end):
            row = uint64(numbers[uint64(at)])
            for column in range(columns):
                sums[row, column] += contribution[column]
        begin = end
    return distinct[:known], sums


@compiled
def copy_new_rows(table: Any, ids: Any, known: Any) -> Any:
    """Return the distinct `ids` (n,) that are not marked in `known` (rows,), and copies of their rows of `table`.

    `table` has shape (rows, columns). The returned ids are marked in `known`.
    """
    new, count, columns = np.empty(len(ids), ids.dtype), 0, uint64(table.shape[1])
    for at in range(len(ids)):
        if not known[uint64(ids[uint64(at)])]:
            known[uint64(ids[uint64(at)])] = True
            new[count] = ids[uint64(at)]
            count += 1
    rows = np.empty((count, table.shape[1]), table.dtype)
    for at in range(count):
        if at + _AHEAD < count:
            _prefetch(table, int64(new[at + _AHEAD]))
        for column in range(columns):
            rows[uint64(at), column] = table[uint64(new[uint64(at)]), column]
    return new[:count], rows


@compiled
def restore_rows(table: Any, ids: Any, rows: Any) -> Any:
    """Write the saved `rows` (n, columns) back to `table` (rows, columns) at distinct `ids` (n,).

    Returns the saved rows minus the rows that they replaced (n, columns).
    """
    count, columns = len(ids), uint64(table.shape[1])
    ways = np.empty(rows.shape, rows.dtype)
    for at in range(count):
        if at + _AHEAD < count:
            _prefetch(table, int64(ids[at + _AHEAD]))
        row = uint64(ids[uint64(at)])
        for column in range(columns):
            ways[uint64(at), column] = rows[uint64(at), column] - table[row, column]
            table[row, column] = rows[uint64(at), column]
    return ways


@compiled
def sgd_rows(table: Any, rows: Any, gradients: Any, rate: Any) -> None:
    """Take a step of SGD on the distinct `rows` (m,) of `table` with `gradients` (m, columns)."""
    count, columns = len(rows), uint64(table.shape[1])
    for at in range(count):
        if at + _AHEAD < count:
            _prefetch(table, int64(rows[at + _AHEAD]))
        row = uint64(rows[at])
        for column in range(columns):
            table[row, column] -= rate * gradients[uint64(at), column]


@compiled
def adagrad_rows(
    table: Any, squares: Any, rows: Any, gradients: Any, rates: Any, rate: Any, learned: Any, tiny: Any
) -> None:
    """Take a step of Adagrad with one rate per row on the distinct `rows` (m,) of `table`.

    `squares` (rows, 1): for each row, the sum of its mean squared gradients. First, `learned` times the new mean square
    is added to this sum. `rates` (rows, 1): a factor of each row's rate; None: no factors.
    """
    count, columns = len(rows), uint64(table.shape[1])
    for at in range(count):
        if at + _AHEAD < count:
            _prefetch(table, int64(rows[at + _AHEAD]))
            _prefetch(squares, int64(rows[at + _AHEAD]))
        row, square = uint64(rows[at]), table.dtype.type(0.0)
        for column in range(columns):
            square += gradients[uint64(at), column] * gradients[uint64(at), column]
        squares[row, 0] += learned * square / table.dtype.type(columns)
        step = rate / (np.sqrt(squares[row, 0]) + tiny)
        if rates is not None:
            step *= rates[row, 0]
        for column in range(columns):
            table[row, column] -= step * gradients[uint64(at), column]


@compiled
def adam_rows(table: Any, first: Any, second: Any, rows: Any, gradients: Any, rates: Any, keep: Any, tiny: Any) -> None:
    """Take a step of lazy Adam on the distinct `rows` (m,) of `table` with its moments `first` and `second`.

    `keep`: the decay rates of the two moments. `rates`: the step size, and the factor of the second moment's square
    root, both with bias correction.
    """
    count, columns = len(rows), uint64(table.shape[1])
    (rate, root_share), (keep_first, keep_second) = rates, keep
    one = table.dtype.type(1.0)
    for at in range(count):
        if at + _AHEAD < count:
            _prefetch(table, int64(rows[at + _AHEAD]))
            _prefetch(first, int64(rows[at + _AHEAD]))
            _prefetch(second, int64(rows[at + _AHEAD]))
        row = uint64(rows[at])
        for column in range(columns):
            gradient = gradients[uint64(at), column]
            mean = keep_first * first[row, column] + (one - keep_first) * gradient
            square = keep_second * second[row, column] + (one - keep_second) * gradient * gradient
            first[row, column] = mean
            second[row, column] = square
            table[row, column] -= rate * mean / (np.sqrt(square) * root_share + tiny)
