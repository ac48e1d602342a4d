"""Chunks are compressed as by HDF5's filters, and loops over segments of ids return the same as loops over lists."""

from collections import Counter

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from corpus.packing import FILTERS, StoredArray, pack_chunk, unpack_chunk
from corpus.segments import add_counts, fill_rows, gather, renumber

DTYPES = st.sampled_from([np.uint8, np.uint16, np.uint32])


@given(DTYPES.flatmap(lambda dtype: arrays.arrays(dtype, st.tuples(st.integers(1, 30), st.integers(1, 5)))), st.data())
def test_the_first_rows_of_a_packed_chunk_are_unpacked(chunk, data) -> None:
    out = np.empty_like(chunk[: data.draw(st.integers(1, len(chunk)))])
    unpack_chunk(pack_chunk(chunk), out, chunk.nbytes)
    assert np.array_equal(out, chunk[: len(out)])


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Rows, and arrays that store them in chunks of 7 rows with three kinds of filters."""
    file = h5py.File(tmp_path_factory.mktemp("stored") / "a.h5", "w")
    values = np.random.default_rng(0).integers(0, 9_999, (50, 3)).astype(np.uint16)
    kinds = ({}, FILTERS, {"compression": "lzf"})
    return values, [
        StoredArray(file.create_dataset(str(number), data=values, chunks=(7, 3), **kind), "a.h5")
        for number, kind in enumerate(kinds)
    ]


BOUNDS = st.none() | st.integers(-60, 60)


@given(st.lists(st.builds(slice, BOUNDS, BOUNDS), min_size=1, max_size=5))
def test_any_rows_are_read_with_any_filters(stored, slices) -> None:
    values, found = stored
    for rows in slices:
        for array in found:
            assert np.array_equal(array[rows], values[rows])


def test_slices_with_steps_are_refused(stored) -> None:
    with pytest.raises(ValueError, match="have a step"):
        stored[1][0][::2]


STRETCHES = st.lists(st.lists(st.integers(0, 30), max_size=8), min_size=1, max_size=8)


@given(STRETCHES, st.randoms(use_true_random=False))
def test_gather_copies_segments_to_their_targets(texts: list[list[int]], random) -> None:
    values = np.array([number for text in texts for number in text], np.uint32)
    lengths = np.array([len(text) for text in texts], np.int64)
    starts = np.cumsum(lengths) - lengths
    order = random.sample(range(len(texts)), len(texts))
    targets = np.cumsum(lengths[order]) - lengths[order]
    out = np.zeros(len(values), np.uint32)
    gather(values, starts[order], lengths[order], targets, out)
    assert out.tolist() == [number for text in order for number in texts[text]]


@given(st.lists(st.integers(0, 30), max_size=40))
def test_renumber_follows_the_order_of_first_appearance(listed: list[int]) -> None:
    ids, numbers, order = np.array(listed, np.uint32), np.full(31, -1, np.int64), np.empty(31, np.int64)
    known = renumber(ids, numbers, order)
    appeared = list(dict.fromkeys(listed))
    assert order[:known].tolist() == appeared
    assert ids.tolist() == [appeared.index(number) for number in listed]
    assert (numbers == -1).all()


@given(STRETCHES)
def test_rows_are_filled_from_their_beginnings(texts: list[list[int]]) -> None:
    ids = np.array([number for text in texts for number in text], np.uint32)
    lengths = np.array([len(text) for text in texts], np.int64)
    rows = np.zeros((len(texts), 9), np.uint16)
    fill_rows(ids, np.cumsum(lengths) - lengths, lengths, np.arange(100, 131, dtype=np.uint16), rows)
    assert rows.tolist() == [[number + 100 for number in text] + [0] * (9 - len(text)) for text in texts]


@given(STRETCHES)
def test_add_counts_counts_the_ids_of_segments(texts: list[list[int]]) -> None:
    ids = np.array([number for text in texts for number in text], np.uint32)
    lengths = np.array([len(text) for text in texts], np.int64)
    counts = np.zeros(31, np.int64)
    chosen = slice(None, None, 2)
    times = np.arange(len(texts))[chosen]
    add_counts(ids, (np.cumsum(lengths) - lengths)[chosen], lengths[chosen], times, counts)
    expected = Counter(number for copies, text in enumerate(texts) if copies % 2 == 0 for number in copies * text)
    assert {number: found for number, found in enumerate(counts.tolist()) if found} == expected
