"""Chunks are compressed as by HDF5's filters, and any slice of rows is decompressed."""

from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from corpus.packing import FILTERS, ChunkWriter, StoredArray, pack_chunk, unpack_chunk

DTYPES = st.sampled_from([np.uint8, np.uint16, np.uint32])


@given(DTYPES.flatmap(lambda dtype: arrays.arrays(dtype, st.tuples(st.integers(1, 30), st.integers(1, 5)))), st.data())
def test_the_first_rows_of_a_packed_chunk_are_unpacked(chunk: np.ndarray, data: st.DataObject) -> None:
    out = np.empty_like(chunk[: data.draw(st.integers(1, len(chunk)))])
    unpack_chunk(pack_chunk(chunk), out, chunk.nbytes)
    assert np.array_equal(out, chunk[: len(out)])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_hdf5s_own_filters_unpack_what_was_packed(tmp_path: Path, dtype: type) -> None:
    values = np.random.default_rng(0).integers(0, 200, (40, 3)).astype(dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        array = file.create_dataset("a", (40, 3), dtype, chunks=(16, 3), **FILTERS)
        writer = ChunkWriter(packed=True)
        for first in range(0, 40, 16):
            chunk = np.zeros((16, 3), dtype)
            chunk[: len(values[first : first + 16])] = values[first : first + 16]
            writer.put(array, first, chunk)
        writer.finish()
        writer.close()
    with h5py.File(tmp_path / "a.h5") as file:
        assert np.array_equal(file["a"][:], values)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[np.ndarray, list[StoredArray]]:
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
def test_any_rows_are_read_with_any_filters(stored, slices: list[slice]) -> None:
    values, found = stored
    for rows in slices:
        for array in found:
            assert np.array_equal(array[rows], values[rows])


def test_slices_with_steps_are_refused(stored) -> None:
    with pytest.raises(ValueError, match="must not have a step"):
        stored[1][0][::2]
