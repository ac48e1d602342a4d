"""Reads and writes the small files through which readers and trainers communicate.

A reader writes its status, its end or its error. Trainers write how many parts they have taken. The content of the
files is checked, because other machines can write to a shared file system.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from common.errors import DataError
from common.files import DOCUMENT_BYTES, read_regular
from common.json_values import from_json, parse_json_object
from corpus.reading.storage import write_text

STATUS_NAME = "status.json"
END_NAME = "end.json"
"""File that a reader writes when its sources end: the totals `parts`, `lines`, `words`, `bytes` and `malformed`."""
ERROR_NAME = "error.json"
"""File that a reader writes when it fails, with the error message in the field `sentence`."""
TAKEN_NAME = "taken.json"
"""File that trainers write to the stream's folder.

It maps the name of each reader's folder to the number of the reader's parts that a checkpoint includes.
"""


@dataclass(frozen=True, kw_only=True)
class Status:
    """Progress of a reader."""

    lines: int = 0
    words: int = 0
    bytes: int = 0
    malformed: int = 0
    parts: int = 0
    waiting_seconds: float = 0.0
    """Total seconds, since the reader started, in which the sources had no new lines."""
    paused_seconds: float = 0.0
    """Total seconds, since the reader started, in which the reader waited for trainers."""

    def write(self, folder: Path) -> None:
        """Write the status to the reader's folder. Raises OSError."""
        write_text(str(folder / STATUS_NAME), json.dumps(asdict(self)))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse a status from JSON. Raises DataError for any other text."""
        return from_json(cls, parse_json_object(text))


def reader_folder(stream: Path, reader: int) -> Path:
    return stream / f"reader-{reader}"


def read_status(stream: Path) -> Status:
    """Return the sum of the statuses of all readers of a stream. Raises DataError for an invalid status file."""
    return sum_of(_status(path) for path in sorted(stream.glob(f"reader-*/{STATUS_NAME}")))


def sum_of(statuses: Iterable[Status]) -> Status:
    """Return a status with the sums of all numbers."""
    values = [asdict(status) for status in statuses]
    return Status(**{name: sum(status[name] for status in values) for name in asdict(Status())})


def read_taken(stream: Path, folder: Path, parts: int) -> int:
    """Return the number of a reader's parts that the trainers report as taken, or 0 if there is no report.

    `parts` is the number of parts that the reader has written. Raises DataError if the report has a larger number.
    """
    path = stream / TAKEN_NAME
    values = _read(path)
    taken = 0 if values is None else values.get(folder.name, 0)
    if type(taken) is not int or not 0 <= taken <= parts:
        raise DataError(
            f"{path} reports {taken!r} taken parts of {folder.name}, but its reader has written {parts:,}; start a "
            "new stream"
        )
    return taken


def write_end(folder: Path, status: Status) -> None:
    """Write the file that says that no more parts follow. Raises OSError."""
    values = asdict(status)
    totals = {name: values[name] for name in ("parts", "lines", "words", "bytes", "malformed")}
    write_text(str(folder / END_NAME), json.dumps(totals))


def write_error(folder: Path, sentence: str) -> None:
    """Write an error message for trainers. Ignores a failure to write it."""
    with suppress(OSError):
        write_text(str(folder / ERROR_NAME), json.dumps({"sentence": sentence}))


def _status(path: Path) -> Status:
    values = _read(path)
    if values is None:
        return Status()
    try:
        return from_json(Status, values)
    except DataError as error:
        raise DataError(f"{path} is not the status of a reader: {error}; start the reader again") from error


def _read(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in a file, or None if the file does not exist."""
    try:
        return parse_json_object(read_regular(path, DOCUMENT_BYTES))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check its permissions") from error
    except DataError as error:
        raise DataError(f"cannot use {path}: {error}; remove the file") from error


def ended(folder: Path) -> bool:
    """Return whether a reader has reached the end of its sources.

    If the reader failed, raise DataError with its message.
    """
    if failed := _read(folder / ERROR_NAME):
        raise DataError(f"the reader of {folder} failed: {failed.get('sentence')}")
    return _read(folder / END_NAME) is not None


def write_taken(stream: Path, taken: Mapping[str, int]) -> None:
    """Report to the readers how many of their parts a checkpoint includes.

    `taken` maps names of reader folders to numbers. Raises OSError.
    """
    write_text(str(stream / TAKEN_NAME), json.dumps(dict(taken)))
