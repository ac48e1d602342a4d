"""Damaged files of ragged rows are refused: when they are opened, or when rows are read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DataError
from corpus.dataset import open_dataset
from tests.corpus.test_dataset import RAGGED, joined, rows, write


def ends(change: Callable[[np.ndarray], None], name: str = "train/ends") -> Callable[[h5py.File], None]:
    def put(file: h5py.File) -> None:
        values = file[name][:]
        change(values)
        file[name][:] = values

    return put


def more_tokens(file: h5py.File) -> None:
    tokens = np.append(file["train/tokens"][:], np.uint16(1))
    del file["train/tokens"]
    file.create_dataset("train/tokens", data=tokens, chunks=tokens.shape)


def one_long_row(file: h5py.File) -> None:
    """A row of 5 million zeros, which take a few kilobytes."""
    last = file["train/ends"][-1]
    for name, values in (
        ("tokens", np.append(file["train/tokens"][:], np.zeros(5_000_000, np.uint16))),
        ("ends", np.append(file["train/ends"][:], last + 5_000_000)),
        *((name, np.append(file[f"train/{name}"][:], np.uint8(1))) for name in ("labels", "ratings")),
    ):
        del file[f"train/{name}"]
        file.create_dataset(
            f"train/{name}", data=values, chunks=(min(1 << 19, len(values)),), shuffle=True, compression="gzip"
        )


def sets(place: Any, value: Any) -> Callable[[h5py.File], None]:
    return ends(lambda values: values.__setitem__(place, value))


NO_TOKENS = "/train/ends has a row of no tokens, or of more than 4,194,304"
HARM: dict[str, tuple[Callable[[h5py.File], None], str]] = {
    "a row of none": (ends(lambda values: values.__setitem__(3, values[2])), NO_TOKENS),
    "a first row of none": (sets(0, 0), NO_TOKENS),
    "ends that fall": (ends(lambda values: values.__setitem__([3, 4], values[[4, 3]])), NO_TOKENS),
    "a negative end": (sets(0, -2), "the 20 tokens"),
    "an end behind the tokens": (sets(4, 2**62), "the 20 tokens"),
    "lengths that overflow": (sets(slice(3, 5), (2**63 - 1, -(2**63))), "the 20 tokens"),
    "a last end too early": (sets(-1, 19), "the 20 tokens"),
    "tokens of no row": (more_tokens, "the 21 tokens"),
    "a row longer than any text": (one_long_row, NO_TOKENS),
}


@pytest.mark.parametrize("kind", HARM)
def test_damaged_ends_are_found_when_rows_are_read(tmp_path: Path, kind: str) -> None:
    path, (harm, wrong) = tmp_path / "d.h5", HARM[kind]
    write(path, [rows([2] * 10, RAGGED)], RAGGED)
    with h5py.File(path, "r+") as file:
        harm(file)
    with open_dataset(path) as dataset:
        for read in (
            lambda: list(dataset.train.blocks()),
            lambda: dataset.train.rows(0, len(dataset.train)),
            lambda: [dataset.train.rows(row, row + 1) for row in range(len(dataset.train))],
        ):
            with pytest.raises(DataError, match=f"^{path} is damaged: .*{wrong}.*; make it again by"):
                read()


END = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 25)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 9), END), min_size=1, max_size=3), st.booleans())
def test_any_ends_are_refused_or_rows_are_whole(tmp_path: Path, changes: list[tuple[int, int]], packed: bool) -> None:
    path = tmp_path / "ends.h5"
    write(path, [rows([2] * 10, RAGGED)], RAGGED, packed=packed)
    with h5py.File(path, "r+") as file:
        for row, end in changes:
            file["train/ends"][row] = end
    with open_dataset(path) as dataset:
        try:
            found = joined(list(dataset.train.blocks()))
        except DataError:
            return
    assert (len(found.tokens), len(found.lengths), int(found.lengths.sum())) == (20, 10, 20)
    assert int(found.lengths.min()) >= 1


def changed(**changes: Any) -> Callable[[h5py.File], None]:
    return lambda file: file.attrs.__setitem__(
        "settings", json.dumps({**json.loads(file.attrs["settings"]), **changes})
    )


def without_rows(file: h5py.File) -> None:
    for name in ("ends", "labels", "ratings"):
        dtype = file[f"train/{name}"].dtype
        del file[f"train/{name}"]
        file.create_dataset(f"train/{name}", (0,), dtype, chunks=(1,), maxshape=(None,))


@pytest.mark.parametrize(
    ("harm", "wrong"),
    [
        (lambda file: file.attrs.__setitem__("layout_version", 2), "its settings are those of layout version 3, not 2"),
        (changed(ragged=False), "its settings are those of layout version 2, not 3"),
        (changed(words="runes"), "the rule of words is 'runes'"),
        (changed(classes=["a", "b", 3]), "classes is not of type"),
        (changed(classes=["a", "b", "c\n"], labelled=True), "has a letter that does not print"),
        (lambda file: file["train/labels"].resize(9, axis=0), "the arrays of /train differ in length"),
        (lambda file: file["train/tokens"].resize(9, axis=0), "/train has 10 rows of 9 tokens"),
        (lambda file: file["train/tokens"].resize(10**9, axis=0), "but not all of them are stored"),
        (without_rows, "/train has 0 rows of 20 tokens"),
    ],
)
def test_other_damage_is_found_when_a_file_is_opened(
    tmp_path: Path, harm: Callable[[h5py.File], None], wrong: str
) -> None:
    path = tmp_path / "d.h5"
    write(path, [rows([2] * 10, RAGGED)], RAGGED)
    with h5py.File(path, "r+") as file:
        harm(file)
    with pytest.raises(DataError, match=f"^{path} is damaged, or of another version: .*{wrong}"):
        open_dataset(path)
