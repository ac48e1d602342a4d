"""Outcome of a peer in a comparable form: its counts, and digests of its vocabulary and of its rows.

The digest of the rows covers both splits in the order of the texts' digests: ids without padding, lengths and ratings.
So it does not depend on the format: a matrix in HDF5, lists in Parquet, or lines of text.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from corpus.dataset import open_dataset
from corpus.dataset_settings import Settings
from corpus.text import UNKNOWN

COUNTS = ("lines", "malformed", "empty", "texts", "distinct", "conflicting", "wordless")
"""Counts that every peer reports. All other counts follow from its rows."""

_BLOCK = 1 << 16


class Block(NamedTuple):
    """Rows of a split in order: flat `tokens` without padding, `lengths` and `ratings` with one value per row."""

    test: bool
    tokens: np.ndarray
    lengths: np.ndarray
    ratings: np.ndarray


@dataclass(frozen=True)
class Outcome:
    """Outcome of a peer. Peers that do the same work have equal outcomes."""

    counts: dict[str, int]
    vocabulary: str
    rows: str


def outcome_of(folder: Path) -> Outcome:
    """Return the outcome in a peer's output folder."""
    if (folder / "dataset.h5").exists():
        with open_dataset(folder / "dataset.h5") as dataset:
            return _outcome(dataset.counts, dataset.vocabulary, _hdf5(folder / "dataset.h5"))
    counts = json.loads((folder / "counts.json").read_text())
    vocabulary = (folder / "vocabulary.txt").read_text().split()
    return _outcome(counts, vocabulary, _parquet(folder) if (folder / "rows").is_dir() else _text(folder / "rows.txt"))


def write_counts(folder: Path, counts: dict[str, int], vocabulary: list[str]) -> None:
    """Write counts and vocabulary for `outcome_of`."""
    (folder / "counts.json").write_text(json.dumps({name: int(counts.get(name, 0)) for name in COUNTS}))
    (folder / "vocabulary.txt").write_text("".join(f"{word}\n" for word in vocabulary))


def in_test_bound() -> bytes:
    """Return the 8 bytes that bound the test set by the default share: digests of test rows are below."""
    return int(2**64 * Settings().test_share).to_bytes(8, "big")


def _outcome(counts: dict[str, int], vocabulary: list[str], blocks: Iterator[Block]) -> Outcome:
    found = {name: int(counts[name]) for name in COUNTS}
    hashes = {(test, name): blake2b() for test in (False, True) for name in ("tokens", "lengths", "ratings")}
    for split in ("train", "test"):
        found.update({split: 0, f"positive_{split}": 0})
    found.update({"tokens": 0, "unknown_tokens": 0})
    for block in blocks:
        split = "test" if block.test else "train"
        found[split] += len(block.lengths)
        found[f"positive_{split}"] += int((block.ratings >= Settings().positive_from).sum())
        found["tokens"] += len(block.tokens)
        found["unknown_tokens"] += int((block.tokens == UNKNOWN).sum())
        for name, array in (("tokens", block.tokens), ("lengths", block.lengths), ("ratings", block.ratings)):
            hashes[block.test, name].update(array.astype(np.uint16).tobytes())
    rows = blake2b(b"".join(hashed.digest() for hashed in hashes.values()), digest_size=16)
    return Outcome(found, blake2b("\n".join(vocabulary).encode(), digest_size=16).hexdigest(), rows.hexdigest())


def _hdf5(path: Path) -> Iterator[Block]:
    with open_dataset(path) as dataset:
        for test, split in ((False, dataset.train), (True, dataset.test)):
            for begin in range(0, len(split), _BLOCK):
                rows = split.rows(begin, begin + _BLOCK)
                kept = np.arange(rows.tokens.shape[1]) < rows.lengths[:, None]
                yield Block(test, rows.tokens[kept], rows.lengths, rows.ratings)


def _parquet(folder: Path) -> Iterator[Block]:
    """Yield the rows of Parquet files in the order of their digests. The files' names may have another order."""
    files = [pq.ParquetFile(path) for path in (folder / "rows").rglob("*.parquet")]
    firsts = {}
    for file in files:
        if file.metadata.num_rows:
            firsts[next(file.iter_batches(1, columns=["digest"]))["digest"][0].as_py()] = file
    for _, file in sorted(firsts.items(), key=lambda item: item[0]):
        for batch in file.iter_batches(_BLOCK, columns=["digest", "rating", "tokens"]):
            digests = np.array([digest[:8] for digest in batch["digest"].to_pylist()], "S8")
            tests = digests < np.bytes_(in_test_bound())
            tokens, offsets = batch["tokens"].flatten().to_numpy(), batch["tokens"].offsets.to_numpy()
            yield from _splits(tests, tokens, np.diff(offsets), batch["rating"].to_numpy())


def _text(path: Path) -> Iterator[Block]:
    """Yield the rows of a text file. A line has digest, rating and ids, separated by tabs; spaces separate ids."""
    with path.open("rb") as file:
        while lines := file.readlines(_BLOCK * 256):
            fields = [line.split(b"\t") for line in lines]
            bound = in_test_bound().hex().encode()
            tests = np.array([digest[:16] < bound for digest, _, _ in fields])
            rows = [np.array(ids.split(), np.uint32) for _, _, ids in fields]
            lengths = np.array([len(row) for row in rows])
            yield from _splits(tests, np.concatenate(rows), lengths, np.array([int(rating) for _, rating, _ in fields]))


def _splits(tests: np.ndarray, tokens: np.ndarray, lengths: np.ndarray, ratings: np.ndarray) -> Iterator[Block]:
    of_test = np.repeat(tests, lengths)
    for test in (False, True):
        yield Block(test, tokens[of_test == test], lengths[tests == test], ratings[tests == test])
