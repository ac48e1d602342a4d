"""Copying of a run's files from a node to the data bucket whenever the files change."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from bootstrap.node.store import Store
from common.files import files_below

_EXCLUDED = re.compile(r"(.*/)?\..*|.*\.partial|(node|reader)-[0-9]+(-attempt-[0-9]+)?\.(log|json)")
"""Pattern of files that `sync` does not copy: temporary and hidden files, and files that each node copies with
`copy`."""


class Uploads:
    """Files of a run's folder, and the size and modification time that each file had when it was copied to the
    bucket."""

    def __init__(self, folder: Path, channel: Store, prefix: str, newer: str) -> None:
        """`newer` is the key of the next attempt.

        Nothing is copied once that attempt exists, because files of an older attempt must not replace files of a newer
        attempt.
        """
        self._folder, self._channel, self._prefix, self._newer = folder, channel, prefix, newer
        self._known: dict[str, tuple[int, int]] = {}
        self._copied: dict[str, tuple[int, int]] = {}

    def sync(self, wanted: Callable[[str], bool] = lambda _: True) -> None:
        """Copy changed files, and then remove checkpoints from the bucket that newer checkpoints have replaced.

        Nothing is removed if the folder is missing, for example because the shared folder is no longer mounted.
        """
        present = {name: state for name, state in self._files() if wanted(name)}
        for name, state in present.items():
            if self._known.get(name) != state:
                with suppress(FileNotFoundError):  # a newer checkpoint has just replaced this one
                    if self._is_replaced():
                        return
                    self._channel.put(self._folder / name, self._prefix + name)
                    self._known[name] = state
        for name in self._known.keys() - present.keys():
            if any(other > name and _folder(other) == _folder(name) for other in present) and not self._is_replaced():
                self._channel.remove(self._prefix + name)
                del self._known[name]

    def copy(self, path: Path, name: str) -> None:
        """Copy a file from outside the run's folder, if it exists and has changed."""
        with suppress(FileNotFoundError):
            if self._copied.get(name) != (state := _state(path)) and not self._is_replaced():
                self._channel.put(path, self._prefix + name)
                self._copied[name] = state

    def _is_replaced(self) -> bool:
        return self._channel.read(self._newer) is not None

    def _files(self) -> Iterator[tuple[str, tuple[int, int]]]:
        for path in files_below(self._folder):
            name = path.relative_to(self._folder).as_posix()
            if not _EXCLUDED.fullmatch(name) and path.is_file() and not path.is_symlink():
                with suppress(FileNotFoundError):
                    yield name, _state(path)


def _folder(name: str) -> str:
    """Return the folder of a file. For a file at the top level, return the file's name. Checkpoints in a folder sort by
    step."""
    return name.rpartition("/")[0] or name


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
