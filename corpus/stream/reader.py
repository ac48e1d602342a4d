"""Runs one reader of a stream: it reads lines from sources, splits them into words, and writes parts to its folder.

A reader stores no other state: the newest part has the position to resume from. If the process is asked to stop, do not
write a part that is not full, because the parts would then differ from those of an uninterrupted reader.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from common.errors import DataError, explain_os_error
from common.private_folders import locked
from corpus.reading.encodings import refuse_other_encoding
from corpus.stream.lines import REASONS, Batch, place_of_malformed, texts_of_batch
from corpus.stream.packing import Packer
from corpus.stream.part_files import SourceFiles
from corpus.stream.parts import Part, Position, part_numbers, part_path, read_part, write_part
from corpus.stream.progress import (
    END_NAME,
    ERROR_NAME,
    Status,
    read_taken,
    reader_folder,
    write_end,
    write_error,
)
from corpus.stream.stream_settings import StreamSettings, read_settings
from corpus.stream.tokenisers import words_of_lines

_MIN_LINES = 1000
"""Number of lines after which the share of malformed lines is checked."""
_IDLE_SECONDS = 0.1
_PAUSE_SECONDS = 0.5
_STATUS_SECONDS = 2.0
_LOCK_TIMEOUT_SECONDS = 20.0
"""Maximum time to wait for another reader of the same folder to exit, in seconds."""

Clock = Callable[[], float]
Sleep = Callable[[float], None]


def read_stream(
    stream: Path, reader: int, readers: int, *, clock: Clock = time.monotonic, sleep: Sleep = time.sleep
) -> Status:
    """Read the files of one reader of a stream until they end, and return the reader's status.

    If the reader was stopped or killed before, it resumes after its newest part. If the sources are unreadable, writes
    the error message for trainers and raises DataError. Also raises DataError if the stream has no reader with this
    number, or if the reader is already running.
    """
    settings = read_settings(stream)
    if readers != settings.readers or not 0 <= reader < readers:
        last = settings.readers - 1
        raise DataError(
            f"{reader}/{readers} is not a reader of {stream}; its readers are 0/{settings.readers} to "
            f"{last}/{settings.readers}"
        )
    folder = reader_folder(stream, reader)
    what, advice = f"cannot read or write {folder}", "correct the cause, and start the reader again"
    with explain_os_error(DataError, what, advice):
        folder.mkdir(exist_ok=True)
        with _lock_folder(folder, clock, sleep):
            (folder / ERROR_NAME).unlink(missing_ok=True)
            try:
                with explain_os_error(DataError, what, advice):
                    files = SourceFiles(
                        *(settings.sources, reader, settings.readers), follow=settings.follow, clock=clock
                    )
                    return _Reader(stream, folder, settings, files, clock, sleep).run()
            except DataError as error:
                write_error(folder, str(error))
                raise
            except Exception as error:
                write_error(folder, f"the reader failed: {error!r}")
                raise


@contextmanager
def _lock_folder(folder: Path, clock: Clock, sleep: Sleep) -> Iterator[None]:
    """Lock the reader's folder. If another reader holds the lock, wait until it exits, up to a time limit."""
    deadline = clock() + _LOCK_TIMEOUT_SECONDS
    while True:
        with locked(folder) as free:
            if free:
                yield
                return
        if clock() >= deadline:
            raise DataError(f"another process writes parts to {folder}; stop it first")
        sleep(_IDLE_SECONDS)


class _Reader:
    def __init__(
        self, stream: Path, folder: Path, settings: StreamSettings, files: SourceFiles, clock: Clock, sleep: Sleep
    ) -> None:
        self._stream, self._folder, self._settings, self._files = stream, folder, settings, files
        self._clock, self._sleep = clock, sleep
        numbers = part_numbers(folder)
        self._after = read_part(part_path(folder, numbers[-1])).after if numbers else Position()
        self._packer = Packer(settings.part_rows, numbers[-1] + 1 if numbers else 0, self._after)
        self._words = words_of_lines(settings)
        self._last_batch = clock()
        self._next_status = clock()
        self._waiting = self._paused = 0.0
        self._malformed_line = ""  # the position of the first one, for a message

    def run(self) -> Status:
        """Read until the sources end, and return the final status."""
        if (self._folder / END_NAME).exists():
            return self._status()
        for batch in self._files.batches(self._after):
            if batch is None:
                self._idle()
            else:
                self._add(batch)
            self._write_status()
        if last := self._packer.finish():
            self._write(last)
        self._status().write(self._folder)
        write_end(self._folder, self._status())
        return self._status()

    def _add(self, batch: Batch) -> None:
        self._last_batch = self._clock()
        texts, text_lines = texts_of_batch(batch, self._settings.text)
        for part in self._packer.add(batch, text_lines, self._words(texts)):
            self._write(part)
        self._check_malformed(batch, text_lines)

    def _check_malformed(self, batch: Batch, text_lines: Sequence[int]) -> None:
        """Raise DataError if too many lines are malformed, or the first of them are in another encoding than UTF-8."""
        if not self._malformed_line and len(text_lines) < len(batch.lines):
            refuse_other_encoding(batch.address, [batch.lines])
            self._malformed_line = place_of_malformed(batch, text_lines)
        malformed, lines, most = self._packer.malformed, self._packer.lines, self._settings.max_malformed
        if self._malformed_line and lines >= _MIN_LINES and malformed / lines > most:
            raise DataError(
                f"{malformed:,} of {lines:,} lines are malformed ({REASONS}), more than {most:.0%}, such as "
                f"{self._malformed_line}; remove such files from the sources, or start a new stream with a larger "
                "max_malformed"
            )

    def _idle(self) -> None:
        self._waiting += self._sleep_measured(_IDLE_SECONDS)
        if self._clock() - self._last_batch >= self._settings.quiet_seconds and (part := self._packer.finish()):
            self._write(part)

    def _write(self, part: Part) -> None:
        if self._settings.follow:
            self._wait_for_trainers(part.number)
        write_part(self._folder, part)

    def _wait_for_trainers(self, written: int) -> None:
        """Wait while too many parts are written and not yet taken by trainers.

        Remove the parts that a checkpoint includes.
        """
        while True:
            taken = read_taken(self._stream, self._folder, written)
            for number in part_numbers(self._folder):
                if number < min(taken, written - 1):  # the newest part has the position to resume from
                    part_path(self._folder, number).unlink()
            if written - taken <= self._settings.ahead:
                return
            self._paused += self._sleep_measured(_PAUSE_SECONDS)
            self._write_status()

    def _sleep_measured(self, seconds: float) -> float:
        before = self._clock()
        self._sleep(seconds)
        return self._clock() - before

    def _write_status(self) -> None:
        """Write the status file if the last write was long enough ago."""
        if self._clock() >= self._next_status:
            self._status().write(self._folder)
            self._next_status = self._clock() + _STATUS_SECONDS

    def _status(self) -> Status:
        packer = self._packer
        return Status(
            lines=packer.lines,
            words=packer.words,
            bytes=packer.text_bytes,
            malformed=packer.malformed,
            parts=packer.number,
            waiting_seconds=round(self._waiting, 3),
            paused_seconds=round(self._paused, 3),
        )
