"""Copying of a run's results from a node to the store."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path

from bootstrap.node.assignment import READER, TRAIN, Assignment
from bootstrap.node.store import Store
from common import names
from common.files import files_below
from corpus.stream.progress import STATUS_NAME, reader_folder
from trainer.output.run_files import CHECKPOINTS

_UPLOAD_SECONDS = 5.0
_EXCLUDED = re.compile(r"(.*/)?\..*|.*\.partial|(node|reader)-[0-9]+(-attempt-[0-9]+)?\.(log|json)")
"""Pattern of files that `sync` does not copy: temporary and hidden files, and files that each node copies with
`copy`."""


class Uploads:
    """Files of a run's folder, and the size and modification time that each file had when it was copied to the
    store."""

    def __init__(self, folder: Path, channel: Store, prefix: str, newer: str) -> None:
        """`newer` is the key of the next attempt.

        Nothing is copied once that attempt exists, because files of an older attempt must not replace files of a newer
        attempt.
        """
        self._folder, self._channel, self._prefix, self._newer = folder, channel, prefix, newer
        self._copied: dict[str, tuple[int, int]] = {}

    def sync(self, wanted: Callable[[str], bool] = lambda _: True) -> None:
        """Copy changed files, and then remove checkpoints from the store that newer checkpoints have replaced.

        Nothing is removed if the folder is missing, for example because the shared folder is no longer mounted.
        """
        present = [name for name in self._names() if wanted(name)]
        for name in present:
            self.copy(self._folder / name, name)
        for name in self._copied.keys() - set(present):
            if any(other > name and _folder(other) == _folder(name) for other in present) and not self._is_replaced():
                self._channel.remove(self._prefix + name)
                del self._copied[name]

    def copy(self, path: Path, name: str) -> None:
        """Copy a file to the store if it exists and has changed."""
        with suppress(FileNotFoundError):  # a newer checkpoint can have replaced it
            if self._copied.get(name) != (state := _state(path)) and not self._is_replaced():
                self._channel.put(path, self._prefix + name)
                self._copied[name] = state

    def _is_replaced(self) -> bool:
        return self._channel.read(self._newer) is not None

    def _names(self) -> Iterator[str]:
        for path in files_below(self._folder):
            name = path.relative_to(self._folder).as_posix()
            if not _EXCLUDED.fullmatch(name) and path.is_file() and not path.is_symlink():
                yield name


class Results:
    """Results of an attempt that a node copies to the store in the background: the first node copies the run's folder,
    and each node copies the logs of its programs."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment, self._node = assignment, assignment.node
        run, newer = assignment.request.run, assignment.attempt.number + 1
        self._uploads = Uploads(
            assignment.folder, self._node.channel, f"{names.RUNS}{run}/", names.attempt_key(run, newer)
        )
        self._last_start = -_UPLOAD_SECONDS
        self._regular: Future[None] | None = None
        """Latest copy that `copy_regularly` started."""
        self._complete: Future[None] | None = None
        """Copy for which a caller of `is_copied` waits."""

    def copy_regularly(self) -> None:
        """Start to copy changed files, every few seconds. An error is only logged, because the next copy includes the
        same files."""
        if self._regular is not None:
            if not self._regular.done():
                return
            if error := self._regular.exception():
                text = f"the agent could not copy results and tries again: {type(error).__name__}: {error}"
                self._node.say(text)
            self._regular = None
        if self._node.clock() - self._last_start >= _UPLOAD_SECONDS:
            self._last_start = self._node.clock()
            self._regular = self._node.pool.submit(self._copy)

    def is_copied(self, *, finished: bool = False) -> bool:
        """Start to copy all changed files, and return whether the copy is complete. Raises the errors of the copy, and
        then the next call starts it again.

        Checkpoints of a `finished` run are not copied.
        """
        self._complete = self._complete or self._node.pool.submit(partial(self._copy, finished=finished))
        if not self._complete.done():
            return False
        complete, self._complete = self._complete, None
        complete.result()
        return True

    def _copy(self, *, finished: bool = False) -> None:
        assignment = self._assignment
        if assignment.is_first:
            self._uploads.sync(lambda name: not (finished and name.startswith(f"{CHECKPOINTS}/")))
        for reader in assignment.readers:
            self._uploads.copy(reader_folder(assignment.data, reader) / STATUS_NAME, f"{READER}{reader}.json")
        programs = [f"{READER}{reader}" for reader in assignment.readers] + [TRAIN] * bool(assignment.me.gpus)
        for log in map(assignment.log, programs):
            self._uploads.copy(log, log.name)


def _folder(name: str) -> str:
    """Return the folder of a file. For a file at the top level, return the file's name. Checkpoints in a folder sort by
    step."""
    return name.rpartition("/")[0] or name


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
