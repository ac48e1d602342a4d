"""Recognises JSON lines and JSON arrays in the beginning of a file, and explains other JSON files."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain

from common.errors import DataError
from corpus.reading.compression import DamagedArchiveError
from corpus.reading.inputs.layouts import candidates
from corpus.reading.json_arrays import ArrayFile
from corpus.reading.lines import LongLine

_LEVELS = 4
_SHOWN_LETTERS = 60
_MULTILINE_JSON = re.compile(rb"\s*(\{\s*(\"|$)|\[\s*(\{|$))")
"""Beginning of a JSON array, or of a JSON object that spans several lines."""
# https://pandas.pydata.org/docs/reference/api/pandas.DataFrame.to_json.html, read on 2026-11-30
_ORIENTS = {
    "split": re.compile(rb'\s*\{\s*"columns"\s*:\s*\[[^\]]*\]\s*,\s*"(index|data)"'),
    "index": re.compile(rb'\s*\{\s*"[0-9]+"\s*:\s*\{'),
    "columns": re.compile(rb'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\{\s*"[0-9]+"\s*:'),
}
"""For each of pandas' forms of a table without a list of objects, how it begins."""
_LISTS = re.compile(rb'\s*\[\s*\[\s*("(?:[^"\\]|\\.)*"|-?[0-9.]+|null|true|false)\s*,')
"""Beginning of a list of rows, such as the form `values` of pandas."""


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
    objects, and for a table that pandas wrote in another form.
    """
    if not data.lstrip().startswith((b"[", b"{")) or len(objects := json_objects(lines[:2])) > 1:
        return None
    if orient := next((each for each, start in _ORIENTS.items() if start.match(data)), None):
        raise DataError(
            f"{name} is a table in the form {orient!r} of pandas, without an object for each text; write one object "
            f"per line: python3 -c \"import pandas; pandas.read_json('OLD', orient='{orient}').to_json('NEW', "
            "orient='records', lines=True)\""
        )
    if _LISTS.match(data) and not (len(lines) > 1 and all(line.rstrip().endswith(b"]") for line in lines[:2])):
        raise DataError(f"{name} is a list of lists, not of objects; write CSV: jq -r '.[] | @csv' OLD > NEW.csv")
    own = {*example_fields(objects)}
    if own and (set(fields) <= own if fields else candidates(own).texts):
        return None
    array, elements, fault = ArrayFile(iter([data]), name), list[bytes](), None
    try:
        for some in array.elements():
            elements += [] if isinstance(some, LongLine) else some
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
