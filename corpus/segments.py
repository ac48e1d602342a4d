"""Loops over segments of one array of ids, one segment per text, compiled by numba. NumPy would take several passes.

Call them with the same array types everywhere, because numba compiles again for each combination of types. Inner loops
use unsigned indices: numba then omits the check for negative indices.
"""

from numba import uint64

from common.compiled import compiled


@compiled
def gather(values, starts, lengths, targets, out):  # type: ignore[no-untyped-def]
    """Copy the `lengths[i]` values at `starts[i]` to `out[targets[i]:]`, for each i."""
    for segment in range(len(starts)):
        start, target = starts[segment], targets[segment]
        for at in range(lengths[segment]):
            out[uint64(target + at)] = values[uint64(start + at)]


@compiled
def renumber(ids, numbers, order):  # type: ignore[no-untyped-def]
    """Replace each id, in place, by its number in the order of first appearance. Return the number of different ids.

    `numbers` has -1 for every id, before and after the call. `order[n]` becomes the id with the number n.
    """
    known = 0
    for at in range(len(ids)):
        number = numbers[uint64(ids[at])]
        if number < 0:
            number = known
            numbers[ids[at]] = known
            order[known] = ids[at]
            known += 1
        ids[at] = number
    for number in range(known):
        numbers[order[number]] = -1
    return known


@compiled
def fill_rows(ids, starts, lengths, new_ids, rows):  # type: ignore[no-untyped-def]
    """Write the new ids of the `lengths[i]` ids at `starts[i]` to the beginning of row i of `rows`."""
    for row in range(len(rows)):
        for at in range(lengths[row]):
            rows[row, at] = new_ids[uint64(ids[uint64(starts[row] + at)])]


@compiled
def add_counts(ids, starts, lengths, times, counts):  # type: ignore[no-untyped-def]
    """Add to `counts` the occurrences of each id in the segments of `lengths[i]` ids at `starts[i]`.

    Segment i counts `times[i]` times.
    """
    for segment in range(len(starts)):
        for at in range(starts[segment], starts[segment] + lengths[segment]):
            counts[uint64(ids[at])] += times[segment]
