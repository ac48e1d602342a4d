"""The file of a model that fastText's C++ program saves and loads (facebookresearch/fastText, `FastText::saveModel`).

Little-endian: a magic number and the version; the arguments of the training; the dictionary, its words and behind them
its labels; and two matrices, each behind a flag that says whether it is quantised. Row i of the first one belongs to
word i, and behind the words to a bucket of n-grams; row i of the second one to label i.

Do not trust a number in a file: what it claims is compared with the file's bytes before anything of that size is made.
"""

import mmap
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from common.errors import TrainingError
from corpus.reading.formats import FASTTEXT_PREFIX

Matrix = npt.NDArray[np.float32]

SOFTMAX = 3
_LOSSES = (2, SOFTMAX, 4)
"""The losses of models that are read: negative sampling, softmax, one against all. 1 is hierarchical softmax."""

_MAGIC, _VERSION = 793712314, 12
_SUPERVISED = 3
_WORD, _LABEL, _IGNORED = 0, 1, 2
_NOT_PRUNED = -1
_LONGEST = 100
"""The most words or characters of an n-gram. A false claim must not cost time without end, and nobody has longer ones.
"""
_FLOAT = np.dtype("<f4")
_USUAL_WINDOW, _USUAL_NEGATIVES, _USUAL_UPDATES, _USUAL_SAMPLING = 5, 5, 100, 1e-4
"""The program's own values of arguments that are of no consequence for a trained model."""


class _DamagedError(Exception):
    """The file is none of the program's, or damaged; the text is a clause that says how."""


class _Arguments(NamedTuple):
    """The program's arguments that a file holds, in its order."""

    dim: int
    ws: int
    epoch: int
    min_count: int
    neg: int
    word_ngrams: int
    loss: int
    model: int
    bucket: int
    minn: int
    maxn: int
    lr_update_rate: int
    t: float


_HEAD, _ARGUMENTS, _DICTIONARY, _ENTRY, _FLAG, _SHAPE = (
    struct.Struct(f"<{form}") for form in ("2i", "12id", "3i2q", "qb", "?", "2q")
)
HEAD_BYTES = _HEAD.size + _ARGUMENTS.size + _DICTIONARY.size
"""What `read_program_layers` reads."""


@dataclass(frozen=True, kw_only=True)
class ProgramFile:
    """What a file has of a classifier that is not quantised."""

    words: Sequence[bytes]
    labels: Sequence[bytes]
    ignored: Sequence[bytes] = ()
    """Entries that are neither words nor labels: a text is read as if it did not have them."""
    loss: int
    """SOFTMAX, or another number for outputs of which each is a class by itself."""
    ngrams: int
    """The most words of an n-gram."""
    char_lengths: range
    """The numbers of characters of an n-gram; empty: words have no n-grams of characters."""
    vectors: Matrix
    """(words + buckets, size)."""
    weights: Matrix
    """(labels, size)."""

    @property
    def buckets(self) -> int:
        """How many rows of `vectors` are those of n-grams."""
        return len(self.vectors) - len(self.words)


def write_program_file(path: Path, content: ProgramFile) -> None:
    """Write a file. Raises OSError."""
    arguments = _Arguments(
        dim=content.vectors.shape[1],
        ws=_USUAL_WINDOW,
        epoch=0,
        min_count=1,
        neg=_USUAL_NEGATIVES,
        word_ngrams=content.ngrams,
        loss=content.loss,
        model=_SUPERVISED,
        bucket=content.buckets,
        minn=content.char_lengths.start if content.char_lengths else 0,
        maxn=content.char_lengths.stop - 1 if content.char_lengths else 0,
        lr_update_rate=_USUAL_UPDATES,
        t=_USUAL_SAMPLING,
    )
    kinds = ((content.words, _WORD), (content.labels, _LABEL), (content.ignored, _IGNORED))
    entries = [(entry, kind) for group, kind in kinds for entry in group]
    with path.open("wb") as file:
        file.write(_HEAD.pack(_MAGIC, _VERSION) + _ARGUMENTS.pack(*arguments))
        counts = len(entries), len(content.words), len(content.labels)
        file.write(_DICTIONARY.pack(*counts, len(entries), _NOT_PRUNED))
        file.writelines(entry + b"\0" + _ENTRY.pack(1, kind) for entry, kind in entries)
        for matrix in (content.vectors, content.weights):
            file.write(_FLAG.pack(False) + _SHAPE.pack(*matrix.shape))
            file.write(np.ascontiguousarray(matrix, _FLOAT).data)


def read_program_file(path: Path, shown: str) -> ProgramFile:
    """The content of a file, in memory in proportion to its bytes; `shown` is its address for messages.

    Raises TrainingError if it cannot be read, is damaged, or is of another kind.
    """
    try:
        with path.open("rb") as file, _explained(shown):
            return _content(_Reader(_mapped(file)), shown)
    except OSError as error:
        raise TrainingError(f"cannot read {shown}: {error.strerror}") from error
    except MemoryError:
        raise TrainingError(f"{shown} does not fit into this machine's memory") from None


def class_names(content: ProgramFile, shown: str) -> list[str]:
    """The names of a file's labels, in its order, without the program's prefix if all have it. Raises TrainingError."""
    try:
        labels = [label.decode() for label in content.labels]
    except UnicodeDecodeError as error:
        raise TrainingError(f"{shown} has a label that is not UTF-8; train it with other labels") from error
    if len(set(labels)) < len(labels):
        raise TrainingError(f"{shown} has a label twice, so it is damaged; get it again")
    prefix = FASTTEXT_PREFIX if all(label.startswith(FASTTEXT_PREFIX) for label in labels) else ""
    return [label.removeprefix(prefix) for label in labels]


def read_program_layers(head: bytes, shown: str) -> dict[str, Any]:
    """What a file's first HEAD_BYTES tell: `embedding`, `ngrams`, `char_ngrams` and `buckets` as the options of
    `--model fasttext`, and the number of `labels`. Raises TrainingError as `read_program_file` does."""
    with _explained(shown):
        arguments, counts = _head(_Reader(head), shown)
    return layers_of(arguments.dim, arguments.word_ngrams, _char_lengths(arguments), arguments.bucket) | {
        "labels": counts.labels
    }


def layers_of(size: int, ngrams: int, char_lengths: range, buckets: int) -> dict[str, Any]:
    """The options of `--model fasttext` for a model of these layers."""
    return {
        "embedding": size,
        "ngrams": ngrams,
        "char_ngrams": f"{char_lengths.start}-{char_lengths.stop - 1}" if char_lengths else None,
        "buckets": max(buckets, 1),
    }


@contextmanager
def _explained(shown: str) -> Iterator[None]:
    try:
        yield
    except _DamagedError as error:
        raise TrainingError(f"{shown} is not a model of the fastText program, or a damaged one: {error}") from error


def _mapped(file: BinaryIO) -> Any:
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if file.seek(0, 2) else b""


class _Counts(NamedTuple):
    """What a file says of its dictionary."""

    entries: int
    words: int
    labels: int
    tokens: int
    pruned: int


class _Reader:
    """The bytes of a file from its beginning to its end."""

    def __init__(self, content: Any) -> None:
        self._bytes, self._size, self._at = content, len(content), 0

    def take(self, form: struct.Struct) -> tuple[Any, ...]:
        """The next values of this form."""
        return form.unpack_from(self._bytes, self._advance(form.size))

    def entries(self, count: int) -> list[tuple[bytes, int]]:
        """The next entries of the dictionary, each with its kind."""
        found = []
        for _ in range(count):
            end = self._bytes.find(b"\0", self._at)
            if end <= self._at:  # no entry is empty
                raise _DamagedError("it ends within its dictionary")
            begin = self._advance(end + 1 - self._at)
            _, kind = self.take(_ENTRY)
            found.append((self._bytes[begin:end], kind))
        return found

    def matrix(self) -> Matrix:
        """The next matrix, whose flag was read."""
        rows, columns = self.take(_SHAPE)
        if rows < 0 or columns < 1:
            raise _DamagedError(f"a matrix of it has {rows:,} rows of {columns:,} numbers")
        begin = self._advance(rows * columns * _FLOAT.itemsize)
        values = np.frombuffer(self._bytes, _FLOAT, rows * columns, begin).reshape(rows, columns)
        return values.astype(np.float32)  # a copy: the file's pages need not stay

    def _advance(self, size: int) -> int:
        """Go on by so many bytes; returns where they begin."""
        begin = self._at
        if size > self._size - begin:
            raise _DamagedError(f"it ends {size - (self._size - begin):,} bytes too early")
        self._at += size
        return begin


def _head(reader: _Reader, shown: str) -> tuple[_Arguments, _Counts]:
    magic, version = reader.take(_HEAD)
    if magic != _MAGIC:
        raise _DamagedError("it does not begin as one")
    if version != _VERSION:
        raise TrainingError(f"{shown} is of version {version} of the format, and this Shoal reads version {_VERSION}")
    arguments = _Arguments(*reader.take(_ARGUMENTS))
    _require_known(arguments, shown)
    counts = _Counts(*reader.take(_DICTIONARY))
    if counts.words < 0 or counts.labels < 1 or counts.words + counts.labels > counts.entries:
        raise _DamagedError(
            f"its dictionary has {counts.words:,} words and {counts.labels:,} labels in {counts.entries:,} entries"
        )
    return arguments, counts


def _char_lengths(arguments: _Arguments) -> range:
    return range(max(arguments.minn, 1), arguments.maxn + 1)


def _content(reader: _Reader, shown: str) -> ProgramFile:
    arguments, counts = _head(reader, shown)
    words, labels = counts.words, counts.labels
    entries = reader.entries(counts.entries)
    if counts.pruned != _NOT_PRUNED or reader.take(_FLAG) != (False,):
        raise TrainingError(f"{shown} is quantised, which Shoal does not read; give the file that it was made from")
    vectors = reader.matrix()
    if reader.take(_FLAG) != (False,):
        raise _DamagedError("its second matrix is quantised, and the first is not")
    weights = reader.matrix()
    if (vectors.shape, weights.shape) != ((words + arguments.bucket, arguments.dim), (labels, arguments.dim)):
        raise _DamagedError("its matrices are not of the size that its dictionary and its arguments have")
    if not (np.isfinite(vectors).all() and np.isfinite(weights).all()):
        raise _DamagedError("its matrices have infinite or NaN values")
    names, kinds = [name for name, _ in entries], [kind for _, kind in entries]
    ends = words, words + labels
    if {*kinds[: ends[0]]} - {_WORD} or {*kinds[ends[0] : ends[1]]} != {_LABEL} or _WORD in kinds[ends[1] :]:
        raise _DamagedError("its dictionary is not words and behind them labels")
    return ProgramFile(
        words=names[: ends[0]],
        labels=names[ends[0] : ends[1]],
        ignored=names[ends[1] :],
        loss=arguments.loss,
        ngrams=arguments.word_ngrams,
        char_lengths=_char_lengths(arguments),
        vectors=vectors,
        weights=weights,
    )


def _require_known(arguments: _Arguments, shown: str) -> None:
    """Raise an error for the arguments of another kind of model, or of none."""
    if arguments.model != _SUPERVISED:
        raise TrainingError(f"{shown} has word vectors of the fastText program, and labels no texts")
    if arguments.loss not in _LOSSES:
        raise TrainingError(
            f"{shown} was trained with hierarchical softmax (-loss hs), which Shoal does not compute; train it with "
            "softmax or ova"
        )
    longest = max(arguments.word_ngrams, arguments.maxn)
    if arguments.word_ngrams < 1 or longest > _LONGEST or arguments.bucket < 0:
        raise _DamagedError(f"its n-grams have up to {longest:,} words or characters and {arguments.bucket:,} buckets")
    if longest > 1 and not arguments.bucket:
        raise _DamagedError("it has n-grams, and no buckets for them")
