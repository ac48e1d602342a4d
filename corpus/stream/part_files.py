"""Reads the lines of files and objects from a position on, with those that appear or grow later.

A line is taken only when it is complete: in a growing file, bytes after the last newline wait. An object and a
compressed file are complete when they appear. Do not resume inside an object without checking its identity: a replaced
object has other bytes at the same offset.
"""

import os
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path

from common.errors import DataError, explain_os_error
from corpus.reading.compression import BLOCK_BYTES, DamagedArchiveError
from corpus.reading.formats import BYTE_ORDER_MARK
from corpus.reading.inputs.finding import current_files
from corpus.reading.lines import split_lines
from corpus.reading.s3 import is_s3
from corpus.reading.sources import InputFile
from corpus.reading.storage import open_blocks, open_range, size_of
from corpus.stream.lines import Batch, batch_of_lines
from corpus.stream.parts import Position

LISTING_SECONDS = 5.0
"""Interval between listings of a folder or prefix, in seconds."""


class SourceFiles:
    """Files of a reader, among those of some addresses."""

    def __init__(
        self, addresses: tuple[str, ...], reader: int, readers: int, *, follow: bool, clock: Callable[[], float]
    ) -> None:
        self._addresses, self._follow = addresses, follow
        self._reader, self._readers = reader, readers
        self._clock = clock
        self._offsets: dict[str, int] = {}
        self._identities: dict[str, str] = {}
        self._ended: set[str] = set()
        self._split_offset = 0
        """Offset in the current file up to which bytes were passed to the line splitter."""

    def batches(self, after: Position) -> Iterator[Batch | None]:
        """Yield batches of lines after a position, or None if there is nothing to read at present.

        Raises DataError for files that are unreadable or no longer match the position.
        """
        self._offsets, self._identities, self._ended = {**after.offsets}, {**after.identities}, {*after.ended}
        self._require_files(after)
        while True:
            listed_at = self._clock()
            for file in self._files():
                if self._is_unread(file):
                    yield from self._read(file)
            if not self._follow:
                return
            yield None
            while self._clock() < listed_at + LISTING_SECONDS:
                yield None

    def _files(self) -> list[InputFile]:
        """Return the files of this reader, each once, in the order of the addresses and then of their names."""
        found: dict[str, InputFile] = {}
        for address in self._addresses:
            with explain_os_error(DataError, f"cannot read {address}", "check its permissions"):
                files = current_files(address)
            if not files and not self._follow:
                raise DataError(f"there are no files at {address}; check the address")
            found.update((file.address, file) for file in sorted(files, key=lambda file: file.address))
        return [file for file in found.values() if reader_of(file.address, self._readers) == self._reader]

    def _require_files(self, after: Position) -> None:
        """Raise DataError for a missing file that may not have been read to its end.

        A growing stream may lose files after they were read. But if reading stopped inside a line, the rest of the line
        is missing.
        """
        there = {file.address for file in self._files()} if after.offsets else set()
        for address, offset in after.offsets.items():
            if address not in there and (not self._follow or address in after.begun):
                raise DataError(
                    f"{address} is missing after {offset:,} bytes were read; restore it, or start a new stream"
                )

    def _is_unread(self, file: InputFile) -> bool:
        offset = self._offsets.get(file.address, 0)
        if self._identities.get(file.address, file.identity) != file.identity:
            raise DataError(
                f"{file.address} was replaced after {offset:,} bytes were read; give new objects new names, or start "
                "a new stream"
            )
        if file.compression is not None:
            return file.address not in self._ended
        if file.size < offset:
            raise _shorter(file, file.size, offset)
        return file.size > offset

    def _read(self, file: InputFile) -> Iterator[Batch]:
        """Yield the complete lines of a file that were not yet read."""
        offset = self._offsets.get(file.address, 0)
        identity = file.identity if is_s3(file.address) else None
        number: int | None = 0 if offset == 0 else None
        try:
            for found in split_lines(self._blocks(file, offset)):
                batch = batch_of_lines(file.address, found, offset)
                if batch.ends[-1] > self._split_offset:  # the last line of a file may have no newline
                    batch.sizes[-1] -= 1
                    batch.ends[-1] -= 1
                if offset == 0 and not batch.too_long:
                    batch.lines[0] = batch.lines[0].removeprefix(BYTE_ORDER_MARK)
                self._offsets[file.address] = offset = batch.ends[-1]
                yield batch._replace(identity=identity, first_line=None if number is None else number + 1)
                number = None if number is None else number + len(batch.lines)
        except DamagedArchiveError as error:
            raise DataError(
                f"{file.address} is damaged: {error}; replace it with a complete file, and move files into a folder "
                "only when they are complete"
            ) from error
        except OSError as error:
            raise DataError(
                f"cannot read {file.address}: {error.strerror or error}; check the disk or network"
            ) from error
        if not self._follow and size_of(file.address) != file.size:
            raise DataError(f"{file.address} changed while Shoal read it; start a new stream that follows its sources")
        if identity is not None:
            self._identities[file.address] = identity
        if file.compression is not None:
            self._ended.add(file.address)
            yield Batch(file.address, [], [], [], identity=identity, ended=True)

    def _blocks(self, file: InputFile, offset: int) -> Iterator[bytes]:
        """Yield the bytes after an offset; in a growing local file, until its last newline."""
        if file.compression is not None:
            blocks = _blocks_after(file, offset)
        else:
            grows = self._follow and not is_s3(file.address)
            blocks = _blocks_between(file.address, offset, _end_of_lines(file, offset) if grows else file.size)
        self._split_offset = offset
        for block in blocks:
            self._split_offset += len(block)
            yield block


def reader_of(address: str, readers: int) -> int:
    """Return the index of the reader of a file. Only the file's name decides."""
    return int.from_bytes(blake2b(address.encode(), digest_size=8).digest()) % readers


def _blocks_between(address: str, start: int, end: int) -> Iterator[bytes]:
    with open_range(address, start) as file:
        while start < end and (block := file.read(min(BLOCK_BYTES, end - start))):
            start += len(block)
            yield block


def _blocks_after(file: InputFile, offset: int) -> Iterator[bytes]:
    """Yield the content of a compressed file after this many decompressed bytes."""
    passed = 0
    for block in open_blocks(file.address):
        passed += len(block)
        if passed > offset:
            yield block[-min(len(block), passed - offset) :]
    if passed < offset:
        raise _shorter(file, passed, offset)


def _end_of_lines(file: InputFile, start: int) -> int:
    """Return the offset after the last newline of a local file, or `start` if no newline follows."""
    end = file.size
    with Path(file.address).open("rb") as content:
        while end > start:
            begin = max(start, end - BLOCK_BYTES)
            content.seek(begin, os.SEEK_SET)
            found = content.read(end - begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            end = begin
    return start


def _shorter(file: InputFile, size: int, offset: int) -> DataError:
    return DataError(
        f"{file.address} has {size:,} bytes, but {offset:,} were already read; give new files new names, or start a "
        "new stream"
    )
