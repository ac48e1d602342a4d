"""Copies what a run writes on a node to the data bucket, again and again, as it changes."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from bootstrap.agent.store import Store
from common.files import files_below

_UNWANTED = re.compile(r"(.*/)?\..*|.*\.partial|(node|reader)-[0-9]+(-attempt-[0-9]+)?\.(log|json)")
"""Files that are on their way, and whatever is hidden; what each node copies itself."""


class Uploads:
    """The files of a run's folder, and what of them the bucket has."""

    def __init__(self, folder: Path, channel: Store, prefix: str, newer: str) -> None:
        """`newer`: the key of the next attempt. Once that is there the files are those of an older attempt, which must
        not replace what the newer one leaves; then nothing is copied any more."""
        self._folder, self._channel, self._prefix, self._newer = folder, channel, prefix, newer
        self._known: dict[str, tuple[int, int]] = {}
        self._copied: dict[str, tuple[int, int]] = {}

    def sync(self, wanted: Callable[[str], bool] = lambda _: True) -> None:
        """Copy the files that have changed, and then remove from the bucket what a newer file here has replaced.

        Of a folder that is not there, such as that of a share whose mount is gone, nothing is removed.
        """
        there = {name: state for name, state in self._files() if wanted(name)}
        for name, state in there.items():
            if self._known.get(name) != state:
                with suppress(FileNotFoundError):  # a checkpoint that a newer one has replaced
                    if self._is_replaced():
                        return
                    self._channel.put(self._folder / name, self._prefix + name)
                    self._known[name] = state
        for name in self._known.keys() - there.keys():
            if any(other > name and _folder(other) == _folder(name) for other in there) and not self._is_replaced():
                self._channel.remove(self._prefix + name)
                del self._known[name]

    def copy(self, path: Path, name: str) -> None:
        """Copy one more file, if it is there and has changed."""
        with suppress(FileNotFoundError):
            if self._copied.get(name) != (state := _state(path)) and not self._is_replaced():
                self._channel.put(path, self._prefix + name)
                self._copied[name] = state

    def _is_replaced(self) -> bool:
        return self._channel.read(self._newer) is not None

    def _files(self) -> Iterator[tuple[str, tuple[int, int]]]:
        for path in files_below(self._folder):
            name = path.relative_to(self._folder).as_posix()
            if not _UNWANTED.fullmatch(name) and path.is_file():
                with suppress(FileNotFoundError):
                    yield name, _state(path)


def _folder(name: str) -> str:
    """That of a checkpoint, whose names are in the order of their steps; of other files their own name."""
    return name.rpartition("/")[0] or name


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns
