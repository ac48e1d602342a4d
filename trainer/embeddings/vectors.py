"""Words with their vectors, and the files of the word2vec program that hold them, as text and as binary.

Both begin with a line of two numbers: of the words, and of the numbers in a vector. Then each word follows, a space,
and its vector: as text in a line, or as little-endian float32, after which some programs write a newline and others
none. The order of the words is that of their frequency.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from common.errors import DataError, explain_os_error
from corpus.reading.s3 import is_s3
from corpus.reading.storage import exists, join, open_range, readable, writable
from trainer.output.run_files import BINARY_VECTORS, CONFIG, MODEL, TEXT_VECTORS, read_json

Matrix = npt.NDArray[np.float32]

_FILES = (BINARY_VECTORS, TEXT_VECTORS)
"""Of a folder the first of these is read."""

_HEAD = re.compile(rb"([0-9]{1,10}) ([0-9]{1,6})\s*\n")
_MOST_HEAD_BYTES = 64
_MOST_WORD_BYTES = 4096
_FLOAT = np.dtype("<f4")
_NOT_VECTORS = "a file of vectors begins with the number of its words and that of the numbers in a vector"


class WordVectors:
    def __init__(
        self, words: Sequence[str], matrix: Matrix, encode: Callable[[Sequence[str]], Matrix] | None = None
    ) -> None:
        """`words` (n,), which differ; `matrix` (n, size). `encode`: what gives other words (m,) vectors (m, size)."""
        self.words, self.matrix = words, matrix
        self._encode = encode

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def unit(self) -> Matrix:
        """(n, size): the vectors at length 1; one that is zero stays so."""
        lengths: Matrix = np.linalg.norm(self.matrix, axis=1, keepdims=True).astype(np.float32)
        lengths[lengths == 0] = 1.0
        unit: Matrix = self.matrix / lengths
        return unit

    def find(self, word: str) -> int | None:
        """The row of a word, or else of its lower-case form; None for an unknown one."""
        found = self.numbers.get(word)
        return self.numbers.get(word.lower()) if found is None else found

    def including(self, words: Iterable[str]) -> "WordVectors":
        """These vectors, and those of other words that are among `words`, where the model can encode them."""
        others = [word for word in dict.fromkeys(words) if word and self.find(word) is None]
        if self._encode is None or not others:
            return self
        return WordVectors([*self.words, *others], np.concatenate((self.matrix, self._encode(others))))

    def nearest(self, word: str, count: int) -> list[tuple[str, float]]:
        """The words with the highest cosines to a known word, at most so many, without itself; each with its cosine.

        Raises KeyError for an unknown word.
        """
        number = self.find(word)
        if number is None:
            raise KeyError(word)
        cosines = self.unit @ self.unit[number]
        cosines[number] = -np.inf
        best = np.argsort(-cosines, kind="stable")[: min(count, len(self.words) - 1)]
        return [(self.words[each], float(cosines[each])) for each in best.tolist()]


def open_vectors(address: str) -> WordVectors:
    """The vectors of a word2vec file, or of a folder with a vectors.bin or vectors.txt, or of a run's output with such
    a folder; all of them a path or s3://...

    Raises DataError as `read_vectors`, and for a folder with another model.
    """
    return read_vectors(vectors_file(address))


def vectors_file(address: str) -> str:
    """The address of the file that `open_vectors` reads. Raises DataError for a folder without vectors."""
    folder = vectors_folder(address)
    if folder is None:
        return address
    return next(place for name in _FILES if exists(place := join(folder, name)))


def vectors_size(address: str) -> int:
    """The numbers in a vector of those that `open_vectors` reads, of which only the beginning is read here. Raises
    DataError for a file that cannot be read, or is another one."""
    file = vectors_file(address)
    with closing(open_range(file, 0, _MOST_HEAD_BYTES)) as beginning:
        return _read_head(beginning, file)[1]


def vectors_folder(address: str) -> str | None:
    """The folder with vectors that is meant by an address; None where that is no folder. Raises DataError for a folder
    without vectors."""
    places = address, join(address, MODEL)
    with explain_os_error(DataError, f"cannot read {address}", "check its permissions"):
        if exists(address):
            return None
        for place in places:
            if any(exists(join(place, name)) for name in _FILES):
                return place
        if not (is_s3(address) or Path(address).is_dir()):
            return None
    for place in places:
        if (config := _config(place)) is not None and "classes" in config:
            raise DataError(
                f"{place} is a model that classifies texts (--model {config.get('model')}) and not one of words; "
                "`shoal predict` takes it"
            )
    raise DataError(
        f"the folder {address} has neither {_FILES[0]} nor {_FILES[1]}; `shoal embed` writes both when it has finished"
    )


def _config(folder: str) -> dict[str, Any] | None:
    """What a folder's config.json says; None where there is none, or it is none."""
    if not exists(place := join(folder, CONFIG)):
        return None
    with readable(place) as path:
        return read_json(path)


def read_vectors(address: str) -> WordVectors:
    """The vectors of a word2vec file, text or binary, a path or s3://...

    Raises DataError for a file that cannot be read, or is another one.
    """
    with readable(address) as path:
        try:
            with path.open("rb") as file:
                count, size = _read_head(file, address)
                begin = file.tell()
                binary = _is_binary(file, size)
                file.seek(begin)
                limit = path.stat().st_size // (size * (_FLOAT.itemsize if binary else 2) + 2)
                if count > limit:
                    raise DataError(
                        f"{address} says that it has {count:,} words with vectors of {size}, and is too short; "
                        "get it again"
                    )
                matrix = np.empty((count, size), np.float32)
                read = _read_binary if binary else _read_text
                words = list(read(file, matrix, address))
        except OSError as error:
            raise DataError(f"cannot read {address}: {error.strerror}") from error
    if len(set(words)) < len(words):
        raise DataError(f"{address} has a word twice; a file of vectors has each word once")
    return WordVectors(words, matrix)


def write_text(address: str, vectors: WordVectors) -> None:
    """Write vectors as text, whole or not at all. Raises DataError."""
    with writable(address) as path, path.open("w", encoding="utf-8") as file:
        file.write(f"{len(vectors.words)} {vectors.matrix.shape[1]}\n")
        for word, vector in zip(vectors.words, vectors.matrix, strict=True):
            file.write(f"{word} {' '.join(map(str, vector.tolist()))}\n")


def write_binary(address: str, vectors: WordVectors) -> None:
    """Write vectors as binary, whole or not at all. Raises DataError."""
    with writable(address) as path, path.open("wb") as file:
        file.write(f"{len(vectors.words)} {vectors.matrix.shape[1]}\n".encode())
        for word, vector in zip(vectors.words, vectors.matrix.astype(_FLOAT), strict=True):
            file.write(word.encode() + b" " + vector.tobytes() + b"\n")


def _read_head(file: BinaryIO, address: str) -> tuple[int, int]:
    found = _HEAD.fullmatch(file.readline(_MOST_HEAD_BYTES))
    count, size = map(int, found.groups()) if found else (0, 0)
    if not (count and size):
        raise DataError(f"{address} holds no vectors: {_NOT_VECTORS}")
    return count, size


def _is_binary(file: BinaryIO, size: int) -> bool:
    """Whether the bytes after the first word are not those of a line of numbers."""
    line = file.readline(_MOST_WORD_BYTES + 32 * size)
    fields = line.split()
    try:
        return len([float(each) for each in fields[-size:]]) < size or len(fields) != size + 1
    except ValueError:
        return True


def _read_text(file: BinaryIO, matrix: Matrix, address: str) -> Iterator[str]:
    count, size = matrix.shape
    for number in range(count):
        line = file.readline(_MOST_WORD_BYTES + 32 * size)
        word, *fields = line.rstrip().split(b" ")
        try:
            matrix[number] = np.array(fields, dtype=np.float32).reshape(size)
        except ValueError:
            raise DataError(
                f"{address}, line {number + 2}: there is no word with {size} numbers; get the file again"
            ) from None
        yield _decoded(word, address, f"line {number + 2}")


def _read_binary(file: BinaryIO, matrix: Matrix, address: str) -> Iterator[str]:
    count, size = matrix.shape
    wanted = size * _FLOAT.itemsize
    for number in range(count):
        word = bytearray()
        while (byte := file.read(1)) not in (b" ", b"") and len(word) <= _MOST_WORD_BYTES:
            word += byte
        vector = file.read(wanted)
        if len(vector) < wanted or len(word) > _MOST_WORD_BYTES:
            raise DataError(f"{address}, word {number + 1} of {count:,}: the file ends there; get it again")
        matrix[number] = np.frombuffer(vector, _FLOAT)
        yield _decoded(bytes(word).lstrip(b"\n"), address, f"word {number + 1}")


def _decoded(word: bytes, address: str, place: str) -> str:
    try:
        return word.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{address}, {place}: the word is not UTF-8; write the file again in UTF-8") from error
