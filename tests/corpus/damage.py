"""What `damaged.yaml` says that is done to a dataset file, and files of fixed and of ragged rows to do it to."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import yaml

from corpus.counts import final_counts
from corpus.dataset import DatasetWriter, RowBlock
from corpus.dataset_settings import Settings

CASES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("damaged.yaml").read_text())
SETTINGS = Settings(row_length=4, vocabulary_size=9)
RAGGED = Settings(ragged=True, vocabulary_size=9)
COUNTS = final_counts({}, settings=SETTINGS, positive_from=4, frequent_words=[("good", 7)])
WORDS = ["good", "bad", "it's"]


def rows(count: int) -> RowBlock:
    tokens = (np.arange(4 * count).reshape(count, 4) % 4 + 1).astype(np.uint16)
    numbers = np.arange(count, dtype=np.uint8)
    return RowBlock(tokens, np.full(count, 4, np.uint16), numbers % 2, numbers % 5 + 1)


def ragged_rows(count: int) -> RowBlock:
    """Rows of two tokens each."""
    numbers = np.arange(count, dtype=np.uint8)
    return RowBlock(np.ones(2 * count, np.uint16), np.full(count, 2, np.int64), numbers % 2, numbers % 5 + 1)


def make(path: Path, *, packed: bool = True, ragged: bool = False) -> bytes:
    with DatasetWriter(path, RAGGED if ragged else SETTINGS, packed=packed) as writer:
        writer.append("train", ragged_rows(10) if ragged else rows(40))
        writer.append("test", ragged_rows(2) if ragged else rows(20))
        writer.finish(vocabulary=WORDS, stopwords=frozenset({"the"}), counts=COUNTS)
    return path.read_bytes()


def again(file: h5py.File, name: str, **how: Any) -> h5py.Dataset:
    """Create an array anew, in place of the one that there is."""
    del file[name]
    return file.create_dataset(name, **how)


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((40,), np.uint8)
    layout[:] = h5py.VirtualSource("other.h5", "secret", (40,))
    del file["train/labels"]
    file.create_virtual_dataset("train/labels", layout)


def type_as_array(file: h5py.File) -> None:
    del file["train/labels"]
    file["train/labels"] = np.dtype(np.uint8)


def one_long_word_many_times(file: h5py.File) -> None:
    """60,000 entries for one string of 60 KB: 3.6 GB of words."""
    array = again(file, "vocabulary", data=["w" * 60_000] + [""] * 59_999, dtype=h5py.string_dtype())
    place, name = array.id.get_offset(), file.filename
    file.close()
    with Path(name).open("r+b") as raw:
        raw.seek(place)
        entry = raw.read(16)
        raw.write(entry * 59_999)


def one_long_row(file: h5py.File) -> None:
    """A row of 5 million zeros, which take a few kilobytes."""
    for name, more in (
        ("tokens", np.zeros(5_000_000, np.uint16)),
        ("ends", file["train/ends"][-1:] + 5_000_000),
        *((name, np.ones(1, np.uint8)) for name in ("labels", "ratings")),
    ):
        data = np.append(file[f"train/{name}"][:], more)
        again(file, f"train/{name}", data=data, chunks=(min(1 << 19, len(data)),), shuffle=True, compression="gzip")


SPECIAL: dict[str, Callable[[h5py.File], None]] = {
    "virtual": virtual,
    "type as array": type_as_array,
    "one long word many times": one_long_word_many_times,
    "one long row": one_long_row,
}


def make_array(file: h5py.File, name: str, how: dict[str, Any]) -> None:
    """Create an array by h5py's arguments; its data may be `kept`, or ones of a shape."""
    how = dict(how)
    if how.get("dtype") == "text":
        how["dtype"] = h5py.string_dtype()
    if how.get("data") == "kept":
        how["data"] = file[name][:]
    elif how.get("data") == "empty":
        how["data"] = h5py.Empty(np.uint8)
    elif "ones" in how:
        how["data"] = np.ones(how.pop("ones"))
    if "external" in how:
        how["external"] = [(str(Path(file.filename).with_name("other.raw")), 0, how["external"])]
    for each in ("shape", "chunks", "maxshape"):
        if each in how:
            how[each] = tuple(how[each])
    again(file, name, **how)


def damage(file: h5py.File, case: dict[str, Any]) -> None:
    """Do to a file what a case of the table says."""
    for name in case.get("without", []):
        (file.attrs if name in file.attrs else file).__delitem__(name)
    for name, value in case.get("attributes", {}).items():
        file.attrs[name] = value
    for name in ("settings", "counts"):
        if name in case:
            file.attrs[name] = json.dumps({**json.loads(file.attrs[name]), **case[name]})
    for name, how in case.get("arrays", {}).items():
        make_array(file, name, how)
    for name, length in case.get("lengths", {}).items():
        file[name].resize(length, axis=0)
    for place, end in case.get("ends", {}).items():
        file["train/ends"][place] = end
    for name, target in case.get("links", {}).items():
        del file[name]
        file[name] = h5py.SoftLink(target) if isinstance(target, str) else h5py.ExternalLink(*target)
    if "special" in case:
        SPECIAL[case["special"]](file)
