"""Processes segments of one array of ids, one segment per text, in loops that numba compiles.

NumPy would need several passes over the array. Call these functions with the same array types everywhere, because numba
compiles a function again for each combination of types. Inner loops use unsigned indices, because numba then omits the
check for negative indices.
"""

from numba import uint64

from common.compiled import compiled


@compiled
def gather(values, starts, lengths, targets, out):  # type: ignore[no-untyped-def]
    """For each i, copy `lengths[i]` values from `values[starts[i]:]` to `out[targets[i]:]`."""
    for segment in range(len(starts)):
        start, target = starts[segment], targets[segment]
        for at in range(lengths[segment]):
            out[uint64(target + at)] = values[uint64(start + at)]


@compiled
def renumber(ids, numbers, order):  # type: ignore[no-untyped-def]
    """Renumber ids in place, from 0, in the order in which they first appear in `ids`.

    Return the number of different ids.

    `numbers` is indexed by id. It must contain only -1 before the call, and contains only -1 after it. `order[n]` is
    set to the id with the number n.
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
    """Map the ids of each segment to new ids, and write segment i to the beginning of `rows[i]`.

    Segment i has `lengths[i]` ids and begins at `ids[starts[i]]`.

    `new_ids` has the new id for each id.
    """
    for row in range(len(rows)):
        for at in range(lengths[row]):
            rows[row, at] = new_ids[uint64(ids[uint64(starts[row] + at)])]


@compiled
def add_counts(ids, starts, lengths, times, counts):  # type: ignore[no-untyped-def]
    """Count the ids in all segments, and add the results to `counts`, which is indexed by id.

    Segment i has `lengths[i]` ids, begins at `ids[starts[i]]`, and is counted `times[i]` times.
    """
    for segment in range(len(starts)):
        for at in range(starts[segment], starts[segment] + lengths[segment]):
            counts[uint64(ids[at])] += times[segment]
