"""Reads the lines of files and S3 objects from a position on, including files that appear or grow later.

A line is yielded only when it is complete: in a growing file, bytes after the last newline are read later. S3 objects
and compressed files must be complete when they appear. Do not resume inside an object without checking its identity,
because a replaced object has different bytes at the same offset.
"""

from collections.abc import Callable, Iterator
from hashlib import blake2b

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
"""Interval between two listings of a folder or prefix, in seconds."""


class SourceFiles:
    """Files at the given addresses that one of several readers reads."""

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
        """Offset in the current file up to which bytes were passed to `split_lines`."""

    def batches(self, after: Position) -> Iterator[Batch | None]:
        """Yield batches of lines after a position. Yield None while no new lines exist, so that the caller can wait.

        Raises DataError for files that are unreadable, missing or replaced.
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
        """Return the files of this reader, each once, in the order of the addresses, then by name."""
        found: dict[str, InputFile] = {}
        for address in self._addresses:
            with explain_os_error(DataError, f"cannot read {address}", "check its permissions"):
                files = current_files(address)
            if not files and not self._follow:
                raise DataError(f"there are no files at {address}; check the address")
            found.update((file.address, file) for file in sorted(files, key=lambda file: file.address))
        return [file for file in found.values() if reader_of(file.address, self._readers) == self._reader]

    def _require_files(self, after: Position) -> None:
        """Raise DataError if a file that was read before is missing, and some of its lines might not have been read.

        In a growing stream, files can be removed after they were read. But if a part ended inside a line of the file,
        the file is needed for the rest of the line.
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
        """Yield the complete lines of a file that were not read before."""
        offset = self._offsets.get(file.address, 0)
        identity = file.identity if is_s3(file.address) else None
        number: int | None = 0 if offset == 0 else None
        try:
            for found in split_lines(self._blocks(file, offset)):
                batch = batch_of_lines(file.address, found, offset)
                if batch.ends[-1] > self._split_offset and not self._end_last_line(file, batch):
                    return
                if not batch.too_long:  # joined files have a mark in the middle
                    batch.lines[:] = [line.removeprefix(BYTE_ORDER_MARK) for line in batch.lines]
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

    def _end_last_line(self, file: InputFile, batch: Batch) -> bool:
        """Correct the last batch of a file without a newline at its end. Return whether the batch still has lines."""
        if self._follow and file.compression is None and not is_s3(file.address):  # the line can grow
            for each in (batch.lines, batch.sizes, batch.ends):
                each.pop()
        else:
            batch.sizes[-1] -= 1
            batch.ends[-1] -= 1
        return bool(batch.lines)

    def _blocks(self, file: InputFile, offset: int) -> Iterator[bytes]:
        """Yield the bytes of a file after an offset."""
        if file.compression is not None:
            blocks = _blocks_after(file, offset)
        else:
            blocks = _blocks_between(file.address, offset, file.size)
        self._split_offset = offset
        for block in blocks:
            self._split_offset += len(block)
            yield block


def reader_of(address: str, readers: int) -> int:
    """Return the index of the reader that reads a file. The index depends only on the file's address."""
    return int.from_bytes(blake2b(address.encode(), digest_size=8).digest()) % readers


def _blocks_between(address: str, start: int, end: int) -> Iterator[bytes]:
    with open_range(address, start) as file:
        while start < end and (block := file.read(min(BLOCK_BYTES, end - start))):
            start += len(block)
            yield block


def _blocks_after(file: InputFile, offset: int) -> Iterator[bytes]:
    """Yield the decompressed content of a compressed file after the first `offset` bytes."""
    passed = 0
    for block in open_blocks(file.address):
        passed += len(block)
        if passed > offset:
            yield block[-min(len(block), passed - offset) :]
    if passed < offset:
        raise _shorter(file, passed, offset)


def _shorter(file: InputFile, size: int, offset: int) -> DataError:
    return DataError(
        f"{file.address} has {size:,} bytes, but {offset:,} were already read; give new files new names, or start a "
        "new stream"
    )
