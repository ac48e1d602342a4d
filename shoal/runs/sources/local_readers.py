"""Runs the readers of a stream on this machine: processes that write the stream's parts to a folder for the ranks.

A finite text is read to its end before the ranks start. A resumed run, or a later run with the same folder, reuses the
parts. Readers of an unbounded stream run at the same time as the ranks, and stop when the ranks exit.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bootstrap.node import processes
from common.errors import DataError, ShoalError
from common.progress import reporter
from common.starter import ends_with_this_process
from corpus.stream.lines import describe_malformed
from corpus.stream.parts import part_numbers
from corpus.stream.progress import ERROR_NAME, ended, read_status, reader_folder
from corpus.stream.stream_settings import StreamSettings, read_settings, write_settings
from trainer.output.run_files import missing_output

FOLDER = "stream"
"""Name of the folder, in a run's output folder, for the parts of the stream."""

_LOOK_SECONDS = 0.2
_END_SECONDS = 10


class Readers:
    """Reader processes of a stream, which are restarted when they die."""

    def __init__(self, stream: Path, settings: StreamSettings) -> None:
        self._stream, self._settings = stream, settings
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._restarts = {number: processes.Restarts() for number in range(settings.readers)}

    def start(self) -> None:
        """Start the readers that have text left to read. Raises DataError if a reader has failed."""
        for number in self._restarts:
            if not self._has_ended(number):
                self._start(number)

    def check(self) -> None:
        """Restart readers that died.

        Raises DataError if a reader reported an error, ShoalError if a reader died too often, and TrainingError if
        another program removed the stream.
        """
        if not self._stream.exists():
            raise missing_output(self._stream.parent)
        for number, process in list(self._running.items()):
            if process.poll() is None:
                continue
            del self._running[number]
            if self._has_ended(number):
                continue
            newest = max(part_numbers(reader_folder(self._stream, number)), default=-1)
            if not self._restarts[number].may_restart(newest):
                log = self._log(number)
                raise ShoalError(f"reader {number} died {processes.MAX_RESTARTS + 1} times; see its log {log}")
            reporter().note(f"reader {number} exited with status {process.returncode}; Shoal restarts it")
            self._start(number)

    def wait(self) -> None:
        """Show the readers' progress until all text is read."""
        reporter().stage("read the text")
        while self._running:
            self.check()
            status = read_status(self._stream)
            reporter().say(words=f"{status.words:,}", malformed=f"{status.malformed:,}")
            reporter().tick()
            time.sleep(_LOOK_SECONDS)
        reporter().leave()

    def end(self) -> None:
        """Stop the readers. Text that they read but did not write is read again at the next start."""
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running.clear()

    def _has_ended(self, number: int) -> bool:
        return ended(reader_folder(self._stream, number))

    def _start(self, number: int) -> None:
        folder = reader_folder(self._stream, number)
        with suppress(FileNotFoundError):
            (folder / ERROR_NAME).unlink()
        with self._log(number).open("ab") as log:
            which = f"{number}/{self._settings.readers}"
            self._running[number] = subprocess.Popen(
                [sys.executable, "-P", "-m", "corpus.stream", "--stream", str(self._stream), "--reader", which],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "OMP_NUM_THREADS": "1", **ends_with_this_process()},
                start_new_session=True,  # Ctrl-C must reach only this process, which stops the readers after the ranks
            )

    def _log(self, number: int) -> Path:
        return self._stream / f"reader-{number}.log"


@contextmanager
def running_readers(stream: Path, settings: StreamSettings) -> Iterator[Readers]:
    """Run the readers of a stream for a block. Finite text is read completely first.

    Raises DataError if a source is unreadable, or if the folder contains text that was read with different settings.
    """
    write_settings(stream, settings)
    readers = Readers(stream, settings)
    try:
        for number in range(settings.readers):
            with suppress(FileNotFoundError):
                (reader_folder(stream, number) / ERROR_NAME).unlink()  # the reader might succeed after a restart
        readers.start()
        if not settings.follow:
            readers.wait()
            if not read_status(stream).words:
                raise DataError(f"there is no word in {', '.join(settings.sources)}")
        yield readers
        status = read_status(stream)
        if status.malformed:
            reporter().note(describe_malformed(status.malformed, status.lines))
    finally:
        readers.end()


def delete_stream(stream: Path) -> None:
    """Delete the text that an earlier run read. Raises DataError if the folder is not a stream."""
    if stream.exists():
        read_settings(stream)  # never delete a different kind of folder
        shutil.rmtree(stream)
