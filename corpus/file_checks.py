"""Reads and checks the attributes and arrays of a dataset file, for `corpus.dataset.open_dataset`.

Do not trust the shape that a file declares. A file of a few kilobytes can declare terabytes of rows that are not
stored, the same word millions of times, or arrays in other files. So the memory that a function uses must be bounded in
proportion to the size of the file.

Error messages are clauses without the name of the file. The caller adds the name.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5d, h5t, h5z

from common.display import is_printable
from common.errors import DataError
from common.files import DOCUMENT_BYTES
from common.json_values import parse_json_object
from corpus.dataset_settings import Settings
from corpus.layout import FIXED, Column, is_digest

_MAX_CHUNK_BYTES = 16 << 20
"""Maximum decompressed size of a chunk, in bytes. Shoal writes chunks of 1 MiB."""
_MAX_DEFLATE_RATIO = 1032
"""Maximum compression ratio of deflate (https://zlib.net/zlib_tech.html)."""
_PIPELINES = ((), (h5z.FILTER_SHUFFLE, h5z.FILTER_DEFLATE))
_WORD = np.dtype([("bytes", "<u4"), ("heap", "<u8"), ("number", "<u4")])
"""Reference with which an HDF5 array stores a string of variable length (HDF5 File Format Specification, VIII)."""
_BIN = re.compile(r"[0-9]{1,9}")
_TOKEN = re.compile(r"[^\0\s]+", re.ASCII)


def read_layout_version(file: h5py.File) -> int | None:
    """Return the layout version, or None if the file is not a dataset."""
    if "layout_version" not in file.attrs:
        return None
    attribute = file.attrs.get_id("layout_version")
    if attribute.shape != () or attribute.dtype.kind not in "iu":
        raise DataError(f"its layout version is not a number such as {FIXED}")
    return int(file.attrs["layout_version"])


def read_digest(file: h5py.File) -> str:
    """Return the recorded digest: 32 hexadecimal digits."""
    found = _text_attribute(file, "digest")
    if not is_digest(found):
        raise DataError("its digest is not 32 hexadecimal digits")
    return found


def read_settings(file: h5py.File) -> Settings:
    return Settings.from_json(_json_attribute(file, "settings"))


def read_counts(file: h5py.File, settings: Settings) -> dict[str, Any]:
    """Return the counts of the dataset, which are numbers and histograms.

    The result is empty for a part file, because it has no counts.
    """
    found = _json_attribute(file, "counts")
    if found:
        require_counts(found)
        if len(found["labels"]["after"]) != settings.class_count:
            raise DataError(f"it does not contain counts for exactly {settings.class_count:,} classes")
    return found


def require_counts(found: dict[str, Any]) -> None:
    """Raise DataError unless the histograms and frequent words of a dataset's counts have the documented form."""
    histograms = [found.get("lengths")]
    for name in ("ratings", "labels"):
        both = found.get(name)
        histograms += [both.get(when) for when in ("before", "after")] if isinstance(both, dict) else [None]
    words = found.get("frequent_words")
    others = found.get("other_labels", {})
    right = all(map(_is_histogram, histograms)) and isinstance(words, list) and all(map(_is_counted_word, words))
    right = right and isinstance(others, dict) and all(map(_is_count, others.values()))
    if not right or not _is_by_label(found["labels"]["before"], found["labels"]["after"]):
        raise DataError("its counts are not in the form of a dataset's counts")


def read_array(file: h5py.File, split: str, column: Column) -> h5py.Dataset:
    """Return the array of a column, of shape (N, *column.row).

    Raises DataError unless the array has the type and shape of the column, and chunks of whole rows that are all
    stored.
    """
    found = _own_array(file, split, column.name)
    layout = found.id.get_create_plist()
    if layout.get_layout() != h5d.CHUNKED:
        raise DataError(f"{found.name} is not chunked")
    if not found.id.get_type().equal(h5t.py_create(column.dtype)):
        raise DataError(f"{found.name} has the type {found.dtype} instead of {column.dtype}")
    if found.shape[1:] != column.row or len(found.shape) != 1 + len(column.row):
        raise DataError(f"{found.name} has the shape {found.shape} instead of (N, {', '.join(map(str, column.row))})")
    rows, *row = found.chunks
    chunk_bytes = rows * int(np.prod(column.row, dtype=np.int64)) * column.dtype.itemsize
    if tuple(row) != column.row or chunk_bytes > _MAX_CHUNK_BYTES:
        raise DataError(
            f"{found.name} has chunks of {found.chunks}; chunks must have whole rows and at most "
            f"{_MAX_CHUNK_BYTES} bytes"
        )
    filters = tuple(layout.get_filter(number)[0] for number in range(layout.get_nfilters()))
    if filters not in _PIPELINES:
        raise DataError(f"{found.name} uses other filters than shuffle and gzip")
    _require_stored(found, plain=-(-len(found) // rows) * chunk_bytes, chunks=-(-len(found) // rows), packed=filters)
    return found


def _require_stored(found: h5py.Dataset, *, plain: int, chunks: int, packed: Sequence[int]) -> None:
    """Raise DataError unless all chunks are stored.

    `plain` is the total decompressed size of the chunks in bytes, `chunks` their number, and `packed` the filters that
    compress them.
    """
    stored = found.id.get_storage_size()
    least, most = (plain // _MAX_DEFLATE_RATIO, found.file.id.get_filesize()) if packed else (plain, plain)
    if found.id.get_num_chunks() != chunks or not least <= stored <= most:
        raise DataError(f"{found.name} declares {len(found):,} rows, but not all of them are stored")


def read_words(file: h5py.File, name: str, content: BinaryIO, settings: Settings) -> list[str]:
    """Return the words of an array of strings, such as the vocabulary.

    `content` is the HDF5 file, opened as bytes. Raises DataError unless all words are different and valid under the
    settings' rule of words.
    """
    found = _own_array(file, name)
    kind = h5py.check_string_dtype(found.dtype)
    layout = found.id.get_create_plist()
    if kind is None or kind.length is not None or len(found.shape) != 1:
        raise DataError(f"{found.name} is not a list of words")
    if layout.get_layout() != h5d.CONTIGUOUS or layout.get_external_count():
        raise DataError(f"{found.name} is not stored contiguously")
    # Many entries can refer to the same string. So sum the lengths of all entries' strings before reading the strings.
    are_stored = found.id.get_storage_size() == _WORD.itemsize * len(found)
    lengths = _word_lengths(found, content) if are_stored else np.empty(0, np.uint32)
    if lengths.max(initial=0) > DOCUMENT_BYTES:
        raise DataError(f"{found.name} has a word of more than {DOCUMENT_BYTES:,} bytes")
    if not are_stored or lengths.sum(dtype=np.int64) > found.file.id.get_filesize():
        raise DataError(f"{found.name} declares {len(found):,} words, but not all of them are stored")
    read: list[str] = found.asstr()[:].tolist()
    # Words by the rule of tokens can contain unprintable characters.
    check: Callable[[str], object] = _TOKEN.fullmatch if settings.words == "tokens" else _is_printable_word
    if len(set(read)) != len(read) or not all(map(check, read)):
        raise DataError(f"{found.name} has an entry that is not a word, or a repeated word")
    return read


def _is_printable_word(found: str) -> bool:
    return bool(found) and is_printable(found) and not any(map(str.isspace, found))


def _word_lengths(found: h5py.Dataset, content: BinaryIO) -> npt.NDArray[np.uint32]:
    """Return the length of each word in bytes."""
    if not len(found):
        return np.empty(0, np.uint32)
    content.seek(found.id.get_offset())
    entries = content.read(_WORD.itemsize * len(found))
    if len(entries) < _WORD.itemsize * len(found):
        raise DataError(f"{found.name} ends after the end of the file")
    return np.frombuffer(entries, _WORD)["bytes"]


def _own_array(file: h5py.File, *path: str) -> h5py.Dataset:
    """Return an array that is stored in the file itself.

    Raises DataError for links, which could lead to any file that the user can read.
    """
    place: Any = file
    for name in path:
        if not isinstance(place, h5py.Group) or (link := place.get(name, getclass=True, getlink=True)) is None:
            raise DataError(f"/{'/'.join(path)} is missing")
        if link is not h5py.HardLink:
            raise DataError(f"/{'/'.join(path)} is a link")
        place = place[name]
    if not isinstance(place, h5py.Dataset) or place.shape is None:
        raise DataError(f"/{'/'.join(path)} is not an array")
    return place


def _json_attribute(file: h5py.File, name: str) -> dict[str, Any]:
    try:
        return parse_json_object(_text_attribute(file, name))
    except DataError as error:
        raise DataError(f"its attribute '{name}': {error}") from error


def _text_attribute(file: h5py.File, name: str) -> str:
    if name not in file.attrs:
        raise DataError(f"its attribute '{name}' is missing")
    attribute = file.attrs.get_id(name)
    if attribute.shape != () or h5py.check_string_dtype(attribute.dtype) is None:
        raise DataError(f"its attribute '{name}' is not text")
    return str(file.attrs[name])


def _is_histogram(found: Any) -> bool:
    return isinstance(found, dict) and all(_BIN.fullmatch(least) and _is_count(each) for least, each in found.items())


def _is_by_label(before: dict[str, int], after: dict[str, int]) -> bool:
    """Return whether both histograms have the same consecutive labels, from 0 to at least 1."""
    return len(after) >= 2 and before.keys() == after.keys() == {str(label) for label in range(len(after))}


def _is_counted_word(found: Any) -> bool:
    is_pair = isinstance(found, list) and len(found) == 2 and isinstance(found[0], str)
    return is_pair and is_printable(found[0]) and _is_count(found[1])


def _is_count(found: Any) -> bool:
    return type(found) is int and found >= 0
