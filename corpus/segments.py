"""Loops over stretches of ids, one text after the other, compiled by numba: what NumPy would do in several passes.

The easy mistake is to hand over arrays of ever other types: each combination is compiled anew. Inner loops take
unsigned integers as places, for which numba does not have to look whether they count from the end.
"""

from numba import uint64

from corpus.compiled import compiled


@compiled
def gather(values, starts, lengths, targets, out):  # type: ignore[no-untyped-def]
    """Copy the stretch of `lengths[i]` values at `starts[i]` to `targets[i]` of `out`, for each i of `starts`."""
    for stretch in range(len(starts)):
        start, target = starts[stretch], targets[stretch]
        for at in range(lengths[stretch]):
            out[uint64(target + at)] = values[uint64(start + at)]


@compiled
def renumber(ids, numbers, order):  # type: ignore[no-untyped-def]
    """Replace ids, in place, by the order of their first appearance; returns how many differ.

    `numbers` has a -1 for every id, and has them again afterwards; `order` gets the id that has number n at n.
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
    """Write the new ids of the stretch of `lengths[i]` ids at `starts[i]` to the beginning of row i of `rows`."""
    for row in range(len(rows)):
        for at in range(lengths[row]):
            rows[row, at] = new_ids[uint64(ids[uint64(starts[row] + at)])]


@compiled
def add_counts(ids, starts, lengths, counts):  # type: ignore[no-untyped-def]
    """Add up how often each id occurs in the stretches of `lengths[i]` ids at `starts[i]`."""
    for stretch in range(len(starts)):
        for at in range(starts[stretch], starts[stretch] + lengths[stretch]):
            counts[uint64(ids[at])] += 1
