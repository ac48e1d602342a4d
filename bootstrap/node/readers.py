"""Readers of a stream that run on a node in an attempt."""

from contextlib import suppress
from pathlib import Path

from bootstrap.node.assignment import READER, Assignment
from bootstrap.node.processes import Restarts
from common.errors import DataError
from corpus.stream.parts import part_numbers
from corpus.stream.progress import reader_folder


class Readers:
    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._restarts = {reader: Restarts() for reader in assignment.readers}

    def start(self) -> None:
        """Start the readers that were never started."""
        for reader in self._restarts:
            if self._assignment.state(f"{READER}{reader}") is None:
                self._start(reader)

    def check(self, *, stop: bool) -> bool:
        """Return whether any reader still runs. With `stop`, ask the readers to stop, else restart readers that died.

        Raises DataError if a reader died repeatedly without progress.
        """
        running = [self._check(reader, stop=stop) for reader in self._restarts]
        return any(running)

    def _check(self, reader: int, *, stop: bool) -> bool:
        program = f"{READER}{reader}"
        state = self._assignment.state(program)
        if state == "running":
            if stop:
                self._assignment.stop(program)
            return True
        if state == 0 or stop:
            return False
        if not self._restarts[reader].may_restart(max(part_numbers(self._folder(reader)), default=-1)):
            last, instance = self._assignment.last_line(program), self._assignment.me.instance
            raise DataError(f"reader {reader} on the node {instance} died repeatedly: {last}")
        with suppress(OSError), self._assignment.log(program).open("a") as log:
            log.write(f"reader {reader} ended with status {state}, and is started again\n")
        self._assignment.forget(program)
        self._start(reader)
        return True

    def _start(self, reader: int) -> None:
        stream = self._assignment.request.stream
        which = f"{reader}/{stream.readers if stream else 0}"
        program = ["-m", "corpus.stream", "--stream", str(self._assignment.data), "--reader", which]
        self._assignment.start(f"{READER}{reader}", program, {"OMP_NUM_THREADS": "1"})

    def _folder(self, reader: int) -> Path:
        return reader_folder(self._assignment.data, reader)
