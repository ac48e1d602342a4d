"""What an HDF5 file claims, checked where it is opened: after that, nothing in a dataset surprises who reads it.

The easy mistake is to believe a shape: a file of some kilobytes can claim terabytes of rows that are not stored, words
that are one and the same millions of times, or arrays that lie in other files. So whatever is read takes
memory in proportion to bytes that the file really has. Errors are clauses: the caller knows the file's name.
"""

import re
from collections.abc import Sequence
from typing import Any, BinaryIO

import h5py
import numpy as np
from h5py import h5d, h5t, h5z

from corpus.errors import DataError
from corpus.json_values import parse_json_object
from corpus.layout import LAYOUT_VERSION, Column, is_digest
from corpus.settings import Settings

_MOST_CHUNK_BYTES = 16 << 20
"""Those that Shoal writes have 1 MiB."""
_MOST_DEFLATED = 1032
"""How many times smaller deflate makes anything at most (zlib's technical details)."""
_PIPELINES = ((), (h5z.FILTER_SHUFFLE, h5z.FILTER_DEFLATE))
_WORD = np.dtype([("bytes", "<u4"), ("heap", "<u8"), ("number", "<u4")])
"""How a string of any length stands in an array (HDF5 File Format Specification, VIII)."""
_BIN = re.compile(r"[0-9]{1,9}")


def read_layout_version(file: h5py.File) -> int | None:
    """The version of the layout; None for a file that is no dataset."""
    if "layout_version" not in file.attrs:
        return None
    attribute = file.attrs.get_id("layout_version")
    if attribute.shape != () or attribute.dtype.kind not in "iu":
        raise DataError(f"its layout version is no number, such as {LAYOUT_VERSION}")
    return int(file.attrs["layout_version"])


def read_digest(file: h5py.File) -> str:
    """The recorded digest: 32 hexadecimal digits."""
    found = _text_attribute(file, "digest")
    if not is_digest(found):
        raise DataError("its digest is not 32 hexadecimal digits")
    return found


def read_settings(file: h5py.File) -> Settings:
    """The settings that it was made by."""
    return Settings.from_json(_json_attribute(file, "settings"))


def read_counts(file: h5py.File) -> dict[str, Any]:
    """The counts, which a part file has none of: numbers, and histograms as people are shown them."""
    found = _json_attribute(file, "counts")
    if not found:
        return found
    histograms = [found.get("lengths")]
    for name in ("ratings", "labels"):
        both = found.get(name)
        histograms += [both.get(when) for when in ("before", "after")] if isinstance(both, dict) else [None]
    words = found.get("frequent_words")
    right = all(map(_is_histogram, histograms)) and isinstance(words, list) and all(map(_is_counted_word, words))
    if not right or any(set(found["labels"][when]) != {"0", "1"} for when in ("before", "after")):
        raise DataError("its counts are not those of a dataset")
    return found


def read_array(file: h5py.File, split: str, column: Column) -> h5py.Dataset:
    """The array of a column: (N, *column.row), in chunks of whole rows that are all stored."""
    found = _own_array(file, split, column.name)
    layout = found.id.get_create_plist()
    if layout.get_layout() != h5d.CHUNKED:
        raise DataError(f"{found.name} is not cut into chunks")
    if not found.id.get_type().equal(h5t.py_create(column.dtype)):
        raise DataError(f"{found.name} holds {found.dtype}, and not {column.dtype}")
    if found.shape[1:] != column.row or len(found.shape) != 1 + len(column.row):
        raise DataError(f"{found.name} has the shape {found.shape}, and not (N, {', '.join(map(str, column.row))})")
    rows, *row = found.chunks
    chunk_bytes = rows * int(np.prod(column.row, dtype=np.int64)) * column.dtype.itemsize
    if tuple(row) != column.row or chunk_bytes > _MOST_CHUNK_BYTES:
        raise DataError(f"{found.name} has chunks of {found.chunks}, and not of whole rows, {_MOST_CHUNK_BYTES} bytes")
    filters = tuple(layout.get_filter(number)[0] for number in range(layout.get_nfilters()))
    if filters not in _PIPELINES:
        raise DataError(f"{found.name} is packed otherwise than by shuffle and gzip")
    _require_stored(found, plain=-(-len(found) // rows) * chunk_bytes, chunks=-(-len(found) // rows), packed=filters)
    return found


def _require_stored(found: h5py.Dataset, *, plain: int, chunks: int, packed: Sequence[int]) -> None:
    """`plain`: the bytes of all its chunks, unpacked."""
    stored = found.id.get_storage_size()
    least, most = (plain // _MOST_DEFLATED, found.file.id.get_filesize()) if packed else (plain, plain)
    if found.id.get_num_chunks() != chunks or not least <= stored <= most:
        raise DataError(f"{found.name} claims {len(found):,} rows, which are not all stored")


def read_words(file: h5py.File, name: str, content: BinaryIO) -> list[str]:
    """A list of words, each on one line and once; `content` is the file's."""
    found = _own_array(file, name)
    kind = h5py.check_string_dtype(found.dtype)
    layout = found.id.get_create_plist()
    if kind is None or kind.length is not None or len(found.shape) != 1:
        raise DataError(f"{found.name} is no list of words")
    if layout.get_layout() != h5d.CONTIGUOUS or layout.get_external_count():
        raise DataError(f"{found.name} is not stored in one piece")
    # Many entries may stand for one and the same string, so what they would fill is added up before they are read.
    size = found.file.id.get_filesize()
    if found.id.get_storage_size() != _WORD.itemsize * len(found) or _word_bytes(found, content) > size:
        raise DataError(f"{found.name} claims {len(found):,} words, which are not all stored")
    read = [str(word) for word in found.asstr()[:]]
    if len(set(read)) != len(read) or not all(word and word.isprintable() and " " not in word for word in read):
        raise DataError(f"{found.name} holds what is no word, or one twice")
    return read


def _word_bytes(found: h5py.Dataset, content: BinaryIO) -> int:
    if not len(found):
        return 0
    content.seek(found.id.get_offset())
    entries = content.read(_WORD.itemsize * len(found))
    if len(entries) < _WORD.itemsize * len(found):
        raise DataError(f"{found.name} reaches beyond the end of the file")
    return int(np.frombuffer(entries, _WORD)["bytes"].sum(dtype=np.int64))


def _own_array(file: h5py.File, *path: str) -> h5py.Dataset:
    """An array of the file itself: links could lead to any file that this user may read."""
    place: Any = file
    for name in path:
        if not isinstance(place, h5py.Group) or (link := place.get(name, getclass=True, getlink=True)) is None:
            raise DataError(f"it has no /{'/'.join(path)}")
        if link is not h5py.HardLink:
            raise DataError(f"/{'/'.join(path)} is a link to another place")
        place = place[name]
    if not isinstance(place, h5py.Dataset) or place.shape is None:
        raise DataError(f"/{'/'.join(path)} is no array")
    return place


def _json_attribute(file: h5py.File, name: str) -> dict[str, Any]:
    try:
        return parse_json_object(_text_attribute(file, name))
    except DataError as error:
        raise DataError(f"of its attribute '{name}': {error}") from error


def _text_attribute(file: h5py.File, name: str) -> str:
    if name not in file.attrs:
        raise DataError(f"it has no attribute '{name}'")
    attribute = file.attrs.get_id(name)
    if attribute.shape != () or h5py.check_string_dtype(attribute.dtype) is None:
        raise DataError(f"its attribute '{name}' is no text")
    return str(file.attrs[name])


def _is_histogram(found: Any) -> bool:
    return isinstance(found, dict) and all(_BIN.fullmatch(least) and _is_count(each) for least, each in found.items())


def _is_counted_word(found: Any) -> bool:
    is_pair = isinstance(found, list) and len(found) == 2 and isinstance(found[0], str)
    return is_pair and found[0].isprintable() and _is_count(found[1])


def _is_count(found: Any) -> bool:
    return type(found) is int and found >= 0
