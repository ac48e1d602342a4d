"""The folder that hosts share, as a store of documents and files.

Any host that answers reads and writes the folder for this command, so that the loss of one is not noticed here.
"""

import posixpath
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from threading import RLock
from typing import TypeVar
from uuid import uuid4

from paramiko.sftp_attr import SFTPAttributes
from paramiko.sftp_client import SFTPClient

from bootstrap.agent.channel import MOST_BYTES, Document
from bootstrap.hosts.connection import LostError, exists, make_folder
from bootstrap.hosts.group import HostGroup
from bootstrap.progress import Bars
from common.errors import ShoalError
from common.files import whole_file

Result = TypeVar("Result")

_LOCKED_SECONDS = 30.0
"""After which a lock was left by a command that was killed."""
_PAUSE_SECONDS = 0.2
_MOST_FILES = 100_000


class SshFolder:
    """A folder that all hosts of a group share."""

    def __init__(self, hosts: HostGroup) -> None:
        self._hosts, self._one_at_a_time = hosts, RLock()

    @property
    def name(self) -> str:
        return self._hosts.file.folder

    def read(self, key: str) -> Document | None:
        """A document, at most its first MiB; None where there is none."""
        content = self._content(key, 0, MOST_BYTES + 1)
        if content is None:
            return None
        return Document(content.decode("utf-8", "replace"), blake2b(content, digest_size=16).hexdigest())

    def read_from(self, key: str, offset: int, most: int) -> bytes:
        """At most so many bytes of a file from an offset; nothing where there is none."""
        return self._content(key, offset, most) or b""

    def _content(self, key: str, offset: int, most: int) -> bytes | None:
        def read(files: SFTPClient) -> bytes | None:
            try:
                with files.open(self._path(key), "rb") as file:
                    file.seek(offset)
                    return bytes(file.read(most))
            except FileNotFoundError:
                return None

        return self._with(read)

    def size(self, key: str) -> int | None:
        """The bytes of a file; None where there is none."""
        found = self._state(key)
        return None if found is None else found.st_size

    def write(self, key: str, text: str) -> None:
        """Write a document, which appears whole."""
        self._with(partial(self._write, key=key, content=text.encode()))

    def write_if(self, key: str, text: str, known: Document | None) -> bool:
        """Write a document in the place of this one, or where there is none; whether this call wrote it."""
        lock, own = f"{key}.lock", uuid4().hex
        self._lock(lock, own)
        try:
            there = self.read(key)
            if (there and there.tag) != (known and known.tag):
                return False
            self.write(key, text)
            return True
        finally:
            if (held := self.read(lock)) is not None and held.text == own:
                self.remove(lock)

    def list(self, prefix: str) -> Mapping[str, str]:
        """The keys that begin with a prefix, in their order, each with its size and its time of change."""

        def walk(files: SFTPClient) -> dict[str, str]:
            found, folders = dict[str, str](), [prefix.rpartition("/")[0]]
            while folders and len(found) < _MOST_FILES:
                above = folders.pop()
                with suppress(FileNotFoundError):
                    for each in files.listdir_attr(self._path(above)):
                        key = posixpath.join(above, each.filename)
                        if each.filename.startswith("."):
                            continue
                        if stat.S_ISDIR(each.st_mode or 0):
                            folders.append(key)
                        elif key.startswith(prefix):
                            found[key] = f"{each.st_size}-{each.st_mtime}"
            return dict(sorted(found.items()))

        return self._with(walk)

    def folders(self, above: str) -> Sequence[str]:
        def names(files: SFTPClient) -> list[str]:
            with suppress(FileNotFoundError):
                return [
                    each.filename for each in files.listdir_attr(self._path(above)) if stat.S_ISDIR(each.st_mode or 0)
                ]
            return []

        return self._with(names)

    def put(self, path: Path, key: str, bars: Bars) -> None:
        """Copy a file of this machine there, where it appears whole; the bar shows its bytes."""

        part = self._partial(key)

        def copy(files: SFTPClient) -> None:
            make_folder(files, posixpath.dirname(part))
            files.put(str(path), part, lambda done, _: bars.at(done))
            files.posix_rename(part, self._path(key))

        try:
            self._with(copy)
        except BaseException:
            with suppress(ShoalError):
                self._with(lambda files: files.remove(part))
            raise

    def get(self, key: str, path: Path) -> None:
        """Copy a file of there to a path of this machine, where it appears whole."""

        def copy(files: SFTPClient) -> None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as part:
                files.get(self._path(key), str(part))

        self._with(copy)

    def remove(self, key: str) -> None:
        def remove(files: SFTPClient) -> None:
            with suppress(FileNotFoundError):
                files.remove(self._path(key))

        self._with(remove)

    def _with(self, work: Callable[[SFTPClient], Result]) -> Result:
        """Do something in the folder by a host that answers: by one that is connected, if there is one, which is asked
        again over a new connection if that breaks."""
        lost: LostError | None = None
        with self._one_at_a_time:
            connected = sorted(self._hosts.file.hosts, key=lambda each: not self._hosts.is_connected(each))
            for host in (*connected[:1], *connected):
                try:
                    connection = self._hosts.connect(host)
                    with connection.answering():
                        return work(connection.files)
                except LostError as error:
                    lost = error
                    self._hosts.drop(host)
                except OSError as error:
                    raise LostError(
                        f"{host.called} cannot use {self.name}: {error.strerror or error}; have its user write there, "
                        f"make room, or name another folder in {self._hosts.file.path}"
                    ) from error
                except BaseException:  # an interrupt may have left half a message in the connection
                    self._hosts.drop(host)
                    raise
        raise LostError(f"no host of {self._hosts.file.path} answers; the last: {lost}")

    def _path(self, key: str) -> str:
        return posixpath.join(self.name, key)

    def _partial(self, key: str) -> str:
        above, name = posixpath.split(self._path(key))
        return posixpath.join(above, f".{name}.{uuid4().hex}.partial")

    def _state(self, key: str) -> SFTPAttributes | None:
        def look(files: SFTPClient) -> SFTPAttributes | None:
            with suppress(FileNotFoundError):
                return files.stat(self._path(key))
            return None

        return self._with(look)

    def _write(self, files: SFTPClient, *, key: str, content: bytes) -> None:
        make_folder(files, posixpath.dirname(self._path(key)))
        part = self._partial(key)
        with files.open(part, "wb") as file:
            file.write(content)
        files.posix_rename(part, self._path(key))

    def _lock(self, key: str, own: str) -> None:
        """Make a file that nobody else has made, with this content. Who was killed leaves it; then it is taken away
        after a while."""

        def make(files: SFTPClient) -> bool:
            make_folder(files, posixpath.dirname(self._path(key)))
            try:
                with files.open(self._path(key), "wxb") as file:
                    file.write(own.encode())
                return True
            except OSError:
                if exists(files, self._path(key)):
                    return False
                raise

        since, seen = time.monotonic(), None
        while not self._with(make):
            held = self.read(key)
            if held is not None and held.text != seen:
                since, seen = time.monotonic(), held.text
            if held is not None and time.monotonic() - since > _LOCKED_SECONDS:
                self._take_away(key, held.text)
            time.sleep(_PAUSE_SECONDS)

    def _take_away(self, key: str, stale: str) -> None:
        """Remove a lock that was left; one that somebody else has made meanwhile is put back."""
        away = f"{key}.{uuid4().hex}"
        with suppress(ShoalError):  # somebody else was quicker
            self._with(lambda files: files.posix_rename(self._path(key), self._path(away)))
            if (found := self.read(away)) is not None and found.text != stale:
                self._with(lambda files: files.rename(self._path(away), self._path(key)))
            self.remove(away)
