"""The small files beside parts: how far a reader is, that it has ended, why it failed, and what trainers have taken.

Readers and trainers know of each other by these alone. They may be on a share to which others write, so what they say
is checked.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from common.errors import DataError
from common.json_values import made, parse_json_object
from corpus.reading.storage import write_text

STATUS_NAME = "status.json"
END_NAME = "end.json"
"""What a reader leaves when its sources have ended: `parts`, `lines`, `words`, `bytes` and `malformed`."""
ERROR_NAME = "error.json"
"""What a reader leaves when it failed: `sentence`."""
TAKEN_NAME = "taken.json"
"""What trainers leave in the stream's folder: by the name of a reader's folder, how many of its parts they have in a
checkpoint."""


@dataclass(frozen=True, kw_only=True)
class Status:
    """What a reader has done of a stream."""

    lines: int = 0
    words: int = 0
    bytes: int = 0
    malformed: int = 0
    parts: int = 0
    waiting_seconds: float = 0.0
    """Idle because the sources had nothing, since the reader was started."""
    paused_seconds: float = 0.0
    """Idle because trainers had not taken what was read, since then."""
    source: str = ""
    """The address that was read last."""

    def write(self, folder: Path) -> None:
        """Write it to the reader's folder. Raises OSError."""
        write_text(str(folder / STATUS_NAME), json.dumps(asdict(self)))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `write`. Raises DataError for anything else."""
        return made(cls, parse_json_object(text))


def reader_folder(stream: Path, reader: int) -> Path:
    return stream / f"reader-{reader}"


def read_status(stream: Path) -> Status:
    """What all readers together have done until now. Raises DataError for files that are no status."""
    return sum_of(_status(path) for path in sorted(stream.glob(f"reader-*/{STATUS_NAME}")))


def sum_of(each: Iterable[Status]) -> Status:
    """What several readers have done together."""
    values = [asdict(status) for status in each]
    sources = sorted({status["source"] for status in values} - {""})
    numbers = {name: sum(status[name] for status in values) for name in asdict(Status()) if name != "source"}
    return Status(**numbers, source=", ".join(sources))


def read_taken(stream: Path, folder: Path, parts: int) -> int:
    """How many of a reader's `parts` trainers have taken, 0 where they report nothing.

    Raises DataError where that cannot be.
    """
    path = stream / TAKEN_NAME
    values = _read(path)
    taken = 0 if values is None else values.get(folder.name, 0)
    if type(taken) is not int or not 0 <= taken <= parts:
        raise DataError(
            f"{path} says that {taken!r} parts of {folder.name} were taken, which has written {parts:,}; begin a new "
            "stream"
        )
    return taken


def write_end(folder: Path, status: Status) -> None:
    """Say that there will be no more parts. Raises OSError."""
    values = asdict(status)
    totals = {name: values[name] for name in ("parts", "lines", "words", "bytes", "malformed")}
    write_text(str(folder / END_NAME), json.dumps(totals))


def write_error(folder: Path, sentence: str) -> None:
    """Leave an error for trainers, if that can be written."""
    with suppress(OSError):
        write_text(str(folder / ERROR_NAME), json.dumps({"sentence": sentence}))


def _status(path: Path) -> Status:
    values = _read(path)
    if values is None:
        return Status()
    try:
        return made(Status, values)
    except DataError as error:
        raise DataError(f"{path} is no status of a reader: {error}; start the reader again") from error


def _read(path: Path) -> dict[str, Any] | None:
    """The JSON object of a file; None where there is no file."""
    try:
        return parse_json_object(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check its permissions") from error
    except DataError as error:
        raise DataError(f"cannot use {path}: {error}; remove it") from error


def ended(folder: Path) -> bool:
    """Whether a reader has come to the end of its sources. Raises DataError with the sentence of one that failed."""
    if failed := _read(folder / ERROR_NAME):
        raise DataError(f"the reader of {folder} has failed: {failed.get('sentence')}")
    return _read(folder / END_NAME) is not None


def write_taken(stream: Path, taken: Mapping[str, int]) -> None:
    """Report to readers how many of their parts, by the names of their folders, are in a checkpoint. Raises OSError."""
    write_text(str(stream / TAKEN_NAME), json.dumps(dict(taken)))
