"""Pieces of local files as tasks: a byte range a line, read by the mapper itself.

On one machine the jobs get these instead of lines, for three reasons. mrjob copies its whole input before the
first mapper starts; it takes a truncated gzip file for a whole one; and of a gzip file of several members it
reads the first alone.
"""

import bz2
import gzip
import zlib
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import IO, NamedTuple

import orjson

from corpus.errors import DataError
from corpus.formats import BYTE_ORDER_MARK

_MIN_RANGE = 1 << 20
_MAX_RANGE = 64 << 20
_REPORT_BYTES = 1 << 20
COMPRESSED: dict[str, Callable[[BufferedReader], IO[bytes]]] = {".gz": gzip.open, ".bz2": bz2.open}  # type: ignore[dict-item]


class Range(NamedTuple):
    """The lines of a file that start at or after byte `start` and before byte `end`; compressed files whole."""

    path: str
    start: int
    end: int

    def line(self) -> bytes:
        """As a line of a job's input."""
        return orjson.dumps(tuple(self))


def parse_range(line: bytes) -> Range:
    """The inverse of `Range.line`."""
    return Range(*orjson.loads(line))


def cut(paths: list[Path], tasks: int) -> list[Range]:
    """Ranges that cover all files, small enough to keep `tasks` busy and large enough to be worth one."""
    total = sum(path.stat().st_size for path in paths)
    size = min(_MAX_RANGE, max(_MIN_RANGE, total // tasks))
    ranges = []
    for path in paths:
        length = path.stat().st_size
        step = length if path.suffix in COMPRESSED else size
        ranges += [Range(str(path), start, min(start + step, length)) for start in range(0, length, max(step, 1))]
    return ranges


def read_lines(part: Range, report: Callable[[int], None]) -> Iterator[bytes]:
    """The lines of a range, without newline and without a byte-order mark at the file's start.

    `report` is called now and then with the bytes of the file read since the last call. Raises DataError, with
    the file's name, when it cannot be read or its compressed data end too early.
    """
    path = Path(part.path)
    try:
        with path.open("rb") as raw:
            if path.suffix in COMPRESSED:
                with COMPRESSED[path.suffix](raw) as lines:
                    yield from _lines(lines, 0, None, raw.tell, report)
            else:
                yield from _lines(raw, part.start, part.end, raw.tell, report)
    except EOFError:
        raise DataError(f"{path} ends in the middle of its compressed data; copy or download it again") from None
    except (gzip.BadGzipFile, zlib.error, OSError) as error:
        raise DataError(f"cannot read {path}: {error}") from error


def _lines(
    file: IO[bytes], start: int, end: int | None, position: Callable[[], int], report: Callable[[int], None]
) -> Iterator[bytes]:
    if start:
        file.seek(start - 1)
        file.readline()  # the line that began before belongs to the range before
    at_start_of_file = start == 0
    offset = file.tell()
    reported = start
    pending = 0
    while end is None or offset < end:
        line = file.readline()
        if not line:
            break
        offset += len(line)
        pending += len(line)
        if at_start_of_file:
            line = line.removeprefix(BYTE_ORDER_MARK)
            at_start_of_file = False
        yield line.removesuffix(b"\n")
        if pending > _REPORT_BYTES:
            pending = 0
            report(position() - reported)
            reported = position()
    report(max(0, (position() if end is None else end) - reported))
