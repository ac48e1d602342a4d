"""Recognises JSON lines and JSON arrays in the beginning of a file, and explains other JSON files."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain

from common.errors import DataError
from corpus.reading.compression import DamagedArchiveError
from corpus.reading.formats import NO_JSON_NUMBER, WRITE_NULL
from corpus.reading.inputs.layouts import candidates
from corpus.reading.json_arrays import ArrayFile

_LEVELS = 4
_SHOWN_LETTERS = 60
_MULTILINE_JSON = re.compile(rb"\s*(\{\s*(\"|$)|\[\s*(\{|$))")
"""Beginning of a JSON array, or of a JSON object that spans several lines."""
# https://pandas.pydata.org/docs/reference/api/pandas.DataFrame.to_json.html, read on 2026-11-30
_TABLE_OF_PANDAS = re.compile(
    rb'\s*\{\s*("columns"\s*:\s*\[[^\]]*\]\s*,\s*"(index|data)"|"[0-9]+"\s*:\s*\{|"[^"]*"\s*:\s*\{\s*"[0-9]+"\s*:)'
)
"""Beginning of a table in one of pandas' forms `split`, `index` and `columns`, which have no list of objects."""


def json_objects(lines: Sequence[bytes]) -> list[dict[str, object]]:
    """Return the objects in those lines that are JSON objects."""
    from orjson import JSONDecodeError, loads

    objects = []
    for line in lines:
        if line.lstrip().startswith(b"{"):
            with suppress(JSONDecodeError):
                objects.append(loads(line))
    return objects


def example_fields(objects: Sequence[Mapping[str, object]]) -> dict[str, str]:
    """Return an example of the content of each field of some objects, also of nested objects, by dotted path."""
    fields: dict[str, str] = {}
    for path, value in chain.from_iterable(map(_flatten, objects)):
        with suppress(RecursionError):  # a value that is nested this deeply is neither a text nor a rating
            fields.setdefault(path, " ".join(str(value).split()))
    return fields


def array_elements(name: str, data: bytes, lines: Sequence[bytes], fields: Sequence[str]) -> list[bytes] | None:
    """Return the elements of a JSON array of objects in the beginning `data` of a file, or None for any other file.

    `lines` has the complete lines of `data`, and `fields` the fields that the user named. A single object is a review,
    and not the object around an array, if it has a text field. Raises DataError for an object with two lists of
    objects, and for a table in another form of pandas.
    """
    if not data.lstrip().startswith((b"[", b"{")) or len(objects := json_objects(lines[:2])) > 1:
        return None
    if _TABLE_OF_PANDAS.match(data):
        raise DataError(
            f"{name} is a table of pandas without an object for each text; write it with "
            "to_json(..., orient='records', lines=True)"
        )
    own = {*example_fields(objects)}
    if own and (set(fields) <= own if fields else candidates(own).texts):
        return None
    array, elements, fault = ArrayFile(iter([data]), name), list[bytes](), None
    try:
        for some in array.elements():
            elements += some
    except DamagedArchiveError:
        pass  # the beginning ends inside the array
    except DataError as error:
        fault = error
    if json_objects(elements) and not candidates(array.keys).texts:
        if fault is not None:
            raise fault
        return elements
    return None


def is_multiline(line: bytes) -> bool:
    """Return whether a first line begins a JSON value of several lines."""
    return _MULTILINE_JSON.match(line) is not None


def not_json_lines(name: str, lines: Sequence[bytes]) -> DataError:
    if found := next(filter(NO_JSON_NUMBER.search, lines), None):
        return DataError(f"{name} has NaN or Infinity, which JSON does not allow: {begins([found])}; {WRITE_NULL}")
    return DataError(
        f"{name} has neither one JSON object per line nor an array of objects: its first line begins {begins(lines)}; "
        "write one object per line (jq -c . OLD > NEW), or give another --format"
    )


def begins(lines: Sequence[bytes]) -> str:
    """Return the beginning of the first line, for a message."""
    return repr(lines[0][:_SHOWN_LETTERS].decode("utf-8", "replace"))


def _flatten(value: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    """Yield the fields of an object and of its nested objects, down to a few levels, as dotted paths and values."""
    for key, inner in value.items():
        if isinstance(inner, dict) and above.count(".") < _LEVELS:
            yield from _flatten(inner, f"{above}{key}.")
        else:
            yield f"{above}{key}", inner
