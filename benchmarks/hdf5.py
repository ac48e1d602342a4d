"""The dataset's file: its size and its speed by each way to pack it, and the cost of merging its parts.

Rows are drawn with replacement from those of real reviews (benchmarks/real_reviews.py). Where these are absent, ids
follow a Zipf law and lengths a log-normal one, with the real rows' mean, tenths and unknown words.
Do not repeat the rows in order: deflate would find them again within its window.
"""

import gzip
import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import h5py
import numpy as np
import numpy.typing as npt

from benchmarks.real_reviews import REVIEWS
from corpus.dataset import DatasetWriter, open_dataset
from corpus.dataset_settings import Settings
from corpus.layout import RowBlock, columns
from corpus.packing import StoredArray
from corpus.rules import most_frequent
from corpus.text import encode_words, load_stopwords, word_ids, words

WHAT = "2 million rows of 100 ids of 16 bits, of real lengths; MB of rows a second, CPU-seconds a GB of rows"
FIGURES = (
    "size %",
    "write MB/s",
    "CPU s/GB to write",
    "read MB/s",
    "CPU s/GB to read",
    "a chunk at random MB/s",
    "merge MB/s",
    "CPU s/GB to merge",
    "cp of the parts MB/s",
)

_ROWS = 2_000_000
_PARTS = 8
_BLOCK_ROWS = 8 * columns(Settings())[0].chunk_rows
_FILTERS: dict[str, dict[str, Any]] = {
    "none": {},
    "lzf": {"compression": "lzf"},
    "shuffle, lzf": {"compression": "lzf", "shuffle": True},
    "shuffle, gzip 1": {"compression": "gzip", "compression_opts": 1, "shuffle": True},
    "shuffle, gzip 4": {"compression": "gzip", "compression_opts": 4, "shuffle": True},
}

Blocks = Iterable[RowBlock]
Arrays = Sequence[h5py.Dataset | StoredArray]


class Way(NamedTuple):
    """A way to keep rows in a file."""

    write: Callable[[Path, Blocks], None]
    write_part: Callable[[Path, Blocks], None]
    opened: Callable[[Path], AbstractContextManager[Arrays]]
    """The arrays of a file, in the order of RowBlock."""


def measure(run: int) -> dict[str, dict[str, float]]:
    """One run of every case: the figures by name."""
    rows = _rows(np.random.default_rng(run))
    ways = {f"HDF5: {case}": Way(_by_h5py(each), _by_h5py(each), _h5py_arrays) for case, each in _FILTERS.items()}
    ways["Shoal, of packed parts"] = Way(_write_packed, _write_packed, _stored_arrays)
    ways["Shoal"] = Way(_write_packed, _write_plain, _stored_arrays)
    with TemporaryDirectory() as name:
        return {case: _measure(Path(name), rows, way) for case, way in ways.items()}


def _measure(folder: Path, rows: RowBlock, way: Way) -> dict[str, float]:
    size = sum(array.nbytes for array in rows) / 1e6
    whole, merged, copied = (folder / name for name in ("whole.h5", "merged.h5", "copied.h5"))
    write = _timed(lambda: way.write(whole, [rows]))
    packed = whole.stat().st_size / 1e6
    with way.opened(whole) as arrays:
        read = _timed(lambda: [array[:] for array in arrays])
        at_random = _timed(lambda: _read_at_random(arrays[0]))
    parts = [folder / f"part-{number}.h5" for number in range(_PARTS)]
    for part, numbers in zip(parts, np.array_split(np.arange(len(rows.labels)), _PARTS), strict=True):
        way.write_part(part, [RowBlock(*(np.asarray(array[numbers[0] : numbers[-1] + 1]) for array in rows))])
    merge = _timed(lambda: way.write(merged, (block for part in parts for block in _blocks(part, way))))
    copy = _timed(lambda: [shutil.copyfile(part, copied) for part in parts])
    for path in (whole, merged, copied, *parts):
        path.unlink()
    figures = (
        *(100 * packed / size, size / write[0], 1_000 * write[1] / size, size / read[0], 1_000 * read[1] / size),
        *(rows.tokens.nbytes / 1e6 / at_random[0], size / merge[0], 1_000 * merge[1] / size, size / copy[0]),
    )
    return dict(zip(FIGURES, figures, strict=True))


def _timed(work: Callable[[], Any]) -> tuple[float, float]:
    """The seconds and the CPU-seconds, of all threads, that the work takes."""
    start = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start[0], time.process_time() - start[1]


def _blocks(path: Path, way: Way) -> Iterator[RowBlock]:
    with way.opened(path) as arrays:
        for start in range(0, len(arrays[0]), _BLOCK_ROWS):
            tokens, *others = (array[start : start + _BLOCK_ROWS] for array in arrays)
            yield RowBlock(tokens, *others)


def _read_at_random(array: h5py.Dataset | StoredArray) -> None:
    step = columns(Settings())[0].chunk_rows
    for number in np.random.default_rng(0).permutation(-(-len(array) // step)):
        array[number * step : (number + 1) * step]


def _by_h5py(filters: dict[str, Any]) -> Callable[[Path, Blocks], None]:
    """Writes Shoal's arrays with HDF5's own filters, in the most obvious way."""

    def write(path: Path, blocks: Blocks) -> None:
        with h5py.File(path, "w") as file:
            for name, dtype, row, chunk_rows in columns(Settings()):
                file.create_dataset(
                    f"train/{name}", (0, *row), dtype, chunks=(chunk_rows, *row), maxshape=(None, *row), **filters
                )
            for block in blocks:
                for name in RowBlock._fields:
                    array, values = file[f"train/{name}"], getattr(block, name)
                    first = len(array)
                    array.resize(first + len(values), axis=0)
                    for start in range(0, len(values), _BLOCK_ROWS):
                        array[first + start : first + start + _BLOCK_ROWS] = values[start : start + _BLOCK_ROWS]

    return write


@contextmanager
def _h5py_arrays(path: Path) -> Iterator[Arrays]:
    with h5py.File(path) as file:
        yield [file[f"train/{name}"] for name in RowBlock._fields]


@contextmanager
def _stored_arrays(path: Path) -> Iterator[Arrays]:
    with open_dataset(path) as dataset:
        yield list(dataset.train.arrays.values())


def _write_packed(path: Path, blocks: Blocks) -> None:
    _write(path, blocks, packed=True)


def _write_plain(path: Path, blocks: Blocks) -> None:
    _write(path, blocks, packed=False)


def _write(path: Path, blocks: Blocks, *, packed: bool) -> None:
    with DatasetWriter(path, Settings(), packed=packed) as writer:
        for block in blocks:
            writer.append("train", block)
        writer.finish(vocabulary=["a"], stopwords=frozenset(), counts={})


def _rows(random: np.random.Generator) -> RowBlock:
    lengths, tokens = _real_rows() if REVIEWS else _drawn_rows(random)
    drawn = random.integers(0, len(lengths), _ROWS)
    ratings = random.choice(np.arange(1, 6, dtype=np.uint8), _ROWS, p=(0.08, 0.05, 0.09, 0.19, 0.59))
    return RowBlock(tokens[drawn], lengths[drawn], (ratings > 3).astype(np.uint8), ratings)


def _real_rows() -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint16]]:
    """The rows of the real reviews by the contract's rules, except that they are not split: lengths, tokens."""
    stopwords = load_stopwords()
    texts = set()
    for path in REVIEWS:
        for line in gzip.decompress(path.read_bytes()).splitlines():
            try:
                texts.add(tuple(words(json.loads(line)["reviewText"])))
            except (ValueError, KeyError, TypeError):  # a malformed line
                continue
    counts = Counter(word for text in texts for word in text if word not in stopwords)
    ids = word_ids([word for word, _ in most_frequent(counts.items(), 10_000)])
    rows = [row for text in sorted(texts) if (row := encode_words(text, ids, stopwords, 100))]
    tokens = np.zeros((len(rows), 100), np.uint16)
    for place, row in zip(tokens, rows, strict=True):
        place[: len(row)] = row
    return np.array([len(row) for row in rows], np.uint16), tokens


def _drawn_rows(random: np.random.Generator) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint16]]:
    """20,000 rows with the statistics of the real ones: mean length 48, tenths 11, 36, 100, 6% unknown words."""
    lengths = np.clip(random.lognormal(np.log(36), 0.95, 20_000), 1, 100).astype(np.uint16)
    weights = 1 / np.arange(8, 10_008)
    tokens = random.choice(np.arange(2, 10_002, dtype=np.uint16), (20_000, 100), p=weights / weights.sum())
    tokens[random.random(tokens.shape) < 0.06] = 1
    return lengths, np.where(np.arange(100) < lengths[:, np.newaxis], tokens, 0).astype(np.uint16)
