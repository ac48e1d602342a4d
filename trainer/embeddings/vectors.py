"""Words with their vectors, and the text and binary files of the word2vec program.

Both formats begin with a line of two numbers: the number of words, and the size of a vector. Each word follows, with a
space and its vector: in the text format as decimal numbers on the same line, in the binary format as little-endian
float32. Some programs write a newline after each binary vector. GloVe's text format lacks the first line, and its words
can contain spaces. The most frequent words come first.
"""

import os
import re
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from io import BytesIO
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from common.display import plural
from common.errors import DataError, explain_os_error
from common.files import open_regular
from corpus.reading.compression import DamagedArchiveError, compression
from corpus.reading.formats import BYTE_ORDER_MARK
from corpus.reading.s3 import is_s3
from corpus.reading.storage import exists, join, open_blocks, readable, writable
from trainer.output.run_files import BINARY_VECTORS, MODEL, TEXT_VECTORS

Matrix = npt.NDArray[np.float32]

_FILES = (BINARY_VECTORS, TEXT_VECTORS)
"""Names of files with vectors in a folder. The first file that exists is read."""

_HEAD = re.compile(rb"([0-9]{1,10})[ \t]([0-9]{1,6})\s*\n")
_MOST_HEAD_BYTES = 1 << 16
_MOST_WORD_BYTES = 4096
_FEW_WORDS = 1 << 12
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_USUAL = 1e-30, 1e6
"""Range of plausible absolute values of nonzero numbers in trained vectors."""
_NUMBER = re.compile(rb"[-+]?[0-9]*\.?[0-9]+(e[-+]?[0-9]+)?")
_FLOAT = np.dtype("<f4")
_NOT_VECTORS = (
    "a file of vectors begins with two numbers, the number of words and the size of a vector, or with a word and its "
    "vector"
)


class WordVectors:
    def __init__(
        self,
        words: Sequence[str],
        matrix: Matrix,
        encode: Callable[[Sequence[str]], Matrix] | None = None,
        note: str = "",
    ) -> None:
        """`words` (n,): distinct words. `matrix` (n, size) float32: their vectors.

        `encode`: function that returns the vectors (m, size) of any other words (m,). `note`: message for the user
        about words that were skipped.
        """
        self.words, self.matrix, self.note = words, matrix, note
        self._encode = encode

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def unit(self) -> Matrix:
        """(n, size): the vectors, scaled to length 1. Zero vectors are not changed."""
        lengths: Matrix = np.linalg.norm(self.matrix, axis=1, keepdims=True).astype(np.float32)
        lengths[lengths == 0] = 1.0
        unit: Matrix = self.matrix / lengths
        return unit

    def find(self, word: str) -> int | None:
        """Return the row number of a word or, if the word is unknown, of its lower-case form; None if both are
        unknown."""
        row = self.numbers.get(word)
        return self.numbers.get(word.lower()) if row is None else row

    def including(self, words: Iterable[str]) -> "WordVectors":
        """Return these vectors plus the vectors of those `words` that are still missing.

        If no `encode` function was given, return these vectors unchanged.
        """
        others = [word for word in dict.fromkeys(words) if word and self.find(word) is None]
        if self._encode is None or not others:
            return self
        return WordVectors([*self.words, *others], np.concatenate((self.matrix, self._encode(others))))

    def nearest(self, word: str, count: int) -> list[tuple[str, float]]:
        """Return the `count` other words with the highest cosines to a known word, each with its cosine.

        Raises KeyError if the word is unknown.
        """
        number = self.find(word)
        if number is None:
            raise KeyError(word)
        cosines = self.unit @ self.unit[number]
        cosines[number] = -np.inf
        best = np.argsort(-cosines, kind="stable")[: min(count, len(self.words) - 1)]
        return [(self.words[each], float(cosines[each])) for each in best.tolist()]


def open_vectors(address: str) -> WordVectors:
    """Read vectors from a path or s3://... of a word2vec file, a folder with vectors, or a run's output.

    A folder with vectors contains vectors.bin or vectors.txt. Raises DataError like `read_vectors`, and for any other
    folder.
    """
    return read_vectors(vectors_file(address))


def vectors_file(address: str) -> str:
    """Return the address of the file that `open_vectors` reads. Raises DataError if a folder contains no vectors."""
    folder = vectors_folder(address)
    if folder is None:
        return address
    return next(place for name in _FILES if exists(place := join(folder, name)))


def vectors_size(address: str) -> int:
    """Return the size of the vectors that `open_vectors` would read. Only the beginning of the file is read.

    Raises DataError if the file is unreadable or invalid.
    """
    file = vectors_file(address)
    with _convert_errors(file):
        return _read_head(BytesIO(next(open_blocks(file), b"")), file)[1]


def vectors_folder(address: str) -> str | None:
    """Return the address of the folder with vectors: `address` itself, or the model folder in a run's output.

    Returns None if the address is a file. Raises DataError if a folder contains no vectors.
    """
    with explain_os_error(DataError, f"cannot read {address}", "check its permissions"):
        if exists(address):
            return None
        for place in (address, join(address, MODEL)):
            if any(exists(join(place, name)) for name in _FILES):
                return place
        if not (is_s3(address) or Path(address).is_dir()):
            return None
    raise DataError(
        f"the folder {address} has neither {_FILES[0]} nor {_FILES[1]}; `shoal embed` writes both at the end of a run"
    )


def read_vectors(address: str) -> WordVectors:
    """Read vectors from a path or s3://... of a file in the text or binary format of word2vec, or in GloVe's format.

    The file can be compressed. Words are skipped if they are repeated, if they are not UTF-8, or if one of their
    numbers is not finite; `note` states how many. Raises DataError if the file is unreadable or invalid.
    """
    words: dict[str, None] = {}
    left_out: Counter[str] = Counter()
    with _open_decompressed(address) as file:
        count, size = _read_head(file, address)
        begin = file.tell()
        binary = _is_binary(file, size)
        file.seek(begin)
        limit = os.fstat(file.fileno()).st_size // (size * (_FLOAT.itemsize if binary else 2) + 2)
        if count > limit:
            raise DataError(
                f"the first line of {address} states {count:,} words with vectors of size {size}, but the file is too "
                "short for these; copy the file again"
            )
        matrix = np.empty((count or _FEW_WORDS, size), np.float32)
        for encoded, vector in (_read_binary if binary else _read_text)(file, count, size, address):
            word = encoded.decode(errors="replace")
            if fault := _fault(word, encoded, vector, words):
                left_out[fault] += 1
                continue
            if len(words) == len(matrix):
                matrix.resize((len(matrix) * 5 // 4 + 1, size), refcheck=False)
            matrix[len(words)] = vector
            words[word] = None
    if not words:
        raise DataError(f"{address} has no usable vectors: {_describe_skipped(left_out)}; train the vectors again")
    note = f"{address}: left out {_describe_skipped(left_out)}" if left_out else ""
    return WordVectors(list(words), matrix[: len(words)], note=note)


def write_text(address: str, vectors: WordVectors) -> None:
    """Write vectors to a file in word2vec's text format, atomically. Raises DataError if writing fails."""
    with writable(address) as path, path.open("w", encoding="utf-8") as file:
        file.write(f"{len(vectors.words)} {vectors.matrix.shape[1]}\n")
        for word, vector in zip(vectors.words, vectors.matrix, strict=True):
            file.write(f"{word} {' '.join(map(str, vector.tolist()))}\n")


def write_binary(address: str, vectors: WordVectors) -> None:
    """Write vectors to a file in word2vec's binary format, atomically. Raises DataError if writing fails."""
    with writable(address) as path, path.open("wb") as file:
        file.write(f"{len(vectors.words)} {vectors.matrix.shape[1]}\n".encode())
        for word, vector in zip(vectors.words, vectors.matrix.astype(_FLOAT), strict=True):
            file.write(word.encode() + b" " + vector.tobytes() + b"\n")


@contextmanager
def _convert_errors(address: str) -> Iterator[None]:
    try:
        with explain_os_error(DataError, f"cannot read {address}", "check the file"):
            yield
    except DamagedArchiveError as error:
        raise DataError(f"{address}: {error}; {error.advice}") from error


@contextmanager
def _open_decompressed(address: str) -> Iterator[BinaryIO]:
    """Yield the content of a file, decompressed according to its file name extension."""
    with _convert_errors(address):
        if compression(address) is None:
            with readable(address) as path, open_regular(path) as file:
                yield file
        else:
            with TemporaryFile() as content:
                content.writelines(open_blocks(address))
                content.seek(0)
                yield content


def _read_head(file: BinaryIO, address: str) -> tuple[int, int]:
    """Return the number of words (0 if unknown), and the size of a vector. Leave `file` at the first word."""
    first = file.readline(_MOST_HEAD_BYTES)
    line = first.removeprefix(BYTE_ORDER_MARK)
    if match := _HEAD.fullmatch(line):
        count, size = map(int, match.groups())
        if count and size:
            return count, size
    elif (size := len([*takewhile(_NUMBER.fullmatch, line.lower().split()[:0:-1])])) > 1 and _is_vector(line, size):
        file.seek(len(first) - len(line))
        return 0, size
    raise DataError(f"{address} contains no vectors: {_NOT_VECTORS}")


def _is_binary(file: BinaryIO, size: int) -> bool:
    """Return whether the next bytes of `file` are neither a line with a word and `size` numbers nor UTF-8 text."""
    begin = file.tell()
    line = file.readline(_MOST_WORD_BYTES + 32 * size)
    file.seek(begin)
    return not _is_vector(line, size) and not _is_text(file.read(_MOST_HEAD_BYTES))


def _is_vector(line: bytes, size: int) -> bool:
    try:
        _split(line, size)
    except ValueError:
        return False
    return True


def _is_text(data: bytes) -> bool:
    """Return whether bytes are UTF-8 without control characters. The last character can be incomplete."""
    try:
        getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return False
    return _CONTROL.search(data) is None


def _split(line: bytes, size: int) -> tuple[bytes, Matrix]:
    """Return a line's word, which can contain spaces, and its vector (size,).

    Raises ValueError if the line has a different format.
    """
    word, *fields = line.rstrip().rsplit(None, size)
    with np.errstate(over="ignore"):  # an overflow yields infinity, and words with such numbers are skipped later
        vector = np.array(fields, dtype=np.float64).astype(np.float32).reshape(size)
    if b" " in word and _NUMBER.fullmatch(word.rpartition(b" ")[2]):
        raise ValueError("more numbers than a vector has")
    return word, vector


def _read_text(file: BinaryIO, count: int, size: int, address: str) -> Iterator[tuple[bytes, Matrix]]:
    read = 0
    for number, line in enumerate(iter(lambda: file.readline(_MOST_WORD_BYTES + 32 * size), b""), 2 if count else 1):
        if not line.strip():
            continue
        try:
            yield _split(line, size)
        except ValueError:
            raise DataError(
                f"{address}, line {number}: the line must have a word and {plural(size, 'number')}; copy the file again"
            ) from None
        read += 1
    if count and read != count:
        raise _wrong_count(address, count, f"the file has {read:,}")


def _read_binary(file: BinaryIO, count: int, size: int, address: str) -> Iterator[tuple[bytes, Matrix]]:
    vector_bytes, odd = size * _FLOAT.itemsize, 0
    for number in range(count):
        word = bytearray()
        while (byte := file.read(1)) not in (b" ", b"") and len(word) <= _MOST_WORD_BYTES:
            word += byte
        vector = file.read(vector_bytes)
        if len(vector) < vector_bytes or len(word) > _MOST_WORD_BYTES:
            raise DataError(f"{address} ends in word {number + 1} of {count:,}; copy the file again")
        encoded, numbers = bytes(word).lstrip(b"\n"), np.frombuffer(vector, _FLOAT)
        odd += not _is_text(encoded) or not _is_usual(numbers)
        yield encoded, numbers
    if 2 * odd > count:
        raise DataError(
            f"{address} is not in the text format, and if read in the binary format, {odd:,} of its "
            f"{plural(count, 'word')} are not UTF-8 or have implausible numbers; write the words as UTF-8 and the "
            "numbers as little-endian float32, or use the text format"
        )
    if file.read(_MOST_WORD_BYTES).strip():
        raise _wrong_count(address, count, "the file has more")


def _wrong_count(address: str, count: int, found: str) -> DataError:
    return DataError(
        f"the first line of {address} states {plural(count, 'word')}, but {found}; copy the file again, or correct "
        "the line"
    )


def _is_usual(vector: Matrix) -> bool:
    sizes = np.abs(vector[vector != 0])
    least, most = _USUAL
    return bool(((sizes >= least) & (sizes <= most)).all())


def _fault(word: str, encoded: bytes, vector: Matrix, words: dict[str, None]) -> str:
    """Return the reason to skip a word, such as "not UTF-8"; "" to keep the word."""
    if word.encode() != encoded:
        return "not UTF-8"
    if not np.isfinite(vector).all():
        return "a number is not finite"
    return "repeated" if word in words else ""


def _describe_skipped(left_out: Counter[str]) -> str:
    return ", ".join(f"{plural(count, 'word')} ({fault})" for fault, count in left_out.items())
