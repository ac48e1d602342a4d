"""A store that keeps its objects in a folder on this machine or, over SFTP, on a host. `Files` is the file system."""

import os
import posixpath
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, TypeVar
from uuid import uuid4

from bootstrap.node.store import MAX_DOCUMENT_BYTES, Bucket, Store, StoredDocument, StoredFile, ignore
from common.files import open_regular, whole_file
from corpus.reading.s3 import is_s3, place_of

Result = TypeVar("Result")

_PERMISSIONS = 0o700
_STALE_LOCK_SECONDS = 30.0
"""Age in seconds at which a lock is considered abandoned by a killed command."""
_PAUSE_SECONDS = 0.2


class Files(Protocol):
    """Interface of a file system, a subset of paramiko's SFTPClient."""

    def open(self, filename: str, mode: str, /) -> IO[bytes]: ...
    def stat(self, path: str, /) -> Any: ...
    def listdir_attr(self, path: str, /) -> Sequence[Any]: ...
    def mkdir(self, path: str, mode: int, /) -> None: ...
    def remove(self, path: str, /) -> None: ...
    def get(self, remote: str, local: str, /) -> None: ...
    def put(self, local: str, remote: str, callback: Callable[[int, int], object], /) -> object: ...
    def posix_rename(self, old: str, new: str, /) -> None:
        """Rename a file. An existing file at the new path is replaced."""

    def rename(self, old: str, new: str, /) -> None:
        """Rename a file. Raises OSError if the new path exists."""


class _Entry(NamedTuple):
    filename: str
    st_mode: int
    st_size: int
    st_mtime: float
    st_ino: int


class _LocalFiles:
    """File system of this machine."""

    def open(self, filename: str, mode: str) -> IO[bytes]:
        return open_regular(filename) if mode == "rb" else Path(filename).open(mode)

    def stat(self, path: str) -> os.stat_result:
        return Path(path).stat()

    def listdir_attr(self, path: str) -> list[_Entry]:
        return [entry for each in Path(path).iterdir() if (entry := _entry(each))]

    def mkdir(self, path: str, mode: int) -> None:
        Path(path).mkdir(mode)

    def remove(self, path: str) -> None:
        Path(path).unlink()

    def get(self, remote: str, local: str) -> None:
        with open_regular(remote) as source, Path(local).open("wb") as copy:
            shutil.copyfileobj(source, copy)

    def put(self, local: str, remote: str, callback: Callable[[int, int], object]) -> None:
        shutil.copyfile(local, remote)
        callback(size := Path(remote).stat().st_size, size)

    def posix_rename(self, old: str, new: str) -> None:
        Path(old).replace(new)

    def rename(self, old: str, new: str) -> None:
        Path(new).hardlink_to(old)
        Path(old).unlink()


def _entry(path: Path) -> _Entry | None:
    with suppress(FileNotFoundError):
        state = path.lstat()
        if stat.S_ISREG(state.st_mode):
            with open_regular(path) as file:  # opening a file makes a network file system ask its server
                state = os.fstat(file.fileno())
        return _Entry(path.name, state.st_mode, state.st_size, state.st_mtime, state.st_ino)
    return None


class Folder(Store):
    """Store in which each key is the path of a file in a folder. The store ignores hidden files, pipes and links."""

    def __init__(
        self, root: Path | str, use: Callable[[Callable[[Files], Any]], Any] = lambda work: work(_LocalFiles())
    ) -> None:
        """`use` calls a function with the folder's file system, by default the file system of this machine."""
        self.name, self._use = str(root), use

    def read(self, key: str, known: StoredDocument | None = None) -> StoredDocument | None:
        content = self._with(lambda files: _read(files, self._path(key), 0, MAX_DOCUMENT_BYTES + 1))
        if content is None:
            return None
        tag = blake2b(content, digest_size=16).hexdigest()
        return known if known and known.tag == tag else StoredDocument(content.decode("utf-8", "replace"), tag)

    def read_from(self, key: str, offset: int, most: int) -> bytes:
        return self._with(lambda files: _read(files, self._path(key), offset, most)) or b""

    def write(self, key: str, text: str) -> None:
        self._write(key, text)

    def write_if(self, key: str, text: str, known: StoredDocument | None) -> bool:
        if known is None:
            return self._write_new(key, text)
        lock, owner = f"{key}.lock", uuid4().hex
        self._lock(lock, owner)
        try:
            current = self.read(key)
            if current is None or current.tag != known.tag:
                return False
            return self._write(key, text, lock, owner)
        finally:
            if (current_lock := self.read(lock)) is not None and current_lock.text == owner:
                self.remove(lock)

    def list(self, prefix: str) -> Mapping[str, StoredFile]:
        def walk(files: Files) -> dict[str, StoredFile]:
            stored, folders = dict[str, StoredFile](), [prefix.rpartition("/")[0]]
            while folders:
                above = folders.pop()
                for each in _listed(files, self._path(above)):
                    key = posixpath.join(above, each.filename)
                    if stat.S_ISDIR(each.st_mode or 0):
                        folders.append(key)
                    elif key.startswith(prefix) and stat.S_ISREG(each.st_mode or stat.S_IFREG):
                        tag = f"{each.st_size}-{each.st_mtime}-{getattr(each, 'st_ino', '')}"
                        stored[key] = StoredFile(each.st_size, each.st_mtime, tag)
            return dict(sorted(stored.items()))

        return self._with(walk)

    def size(self, key: str) -> int | None:
        status = self._with(lambda files: _status(files, self._path(key)))
        return None if status is None else int(status.st_size)

    def get(self, key: str, path: Path, *, changed: float | None = None, count: Callable[[int], None] = ignore) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as partial_file:
            self._with(lambda files: files.get(self._path(key), str(partial_file)))
            count(partial_file.stat().st_size)
            if changed is not None:
                os.utime(partial_file, (changed, changed))

    def put(self, path: Path, key: str, count: Callable[[int], None] = ignore) -> None:
        def copy(files: Files) -> None:
            sent = 0

            def show(done: int, _: int) -> None:
                nonlocal sent
                count(done - sent)
                sent = done

            with _partial(files, self._path(key)) as part:
                files.put(str(path), part, show)
                files.posix_rename(part, self._path(key))

        self._with(copy)

    def remove(self, key: str) -> None:
        def remove(files: Files) -> None:
            with suppress(FileNotFoundError):
                files.remove(self._path(key))

        self._with(remove)

    def _with(self, work: Callable[[Files], Result]) -> Result:
        result: Result = self._use(work)
        return result

    def _path(self, key: str) -> str:
        return posixpath.join(self.name, key)

    def _write(self, key: str, text: str, lock: str = "", own: str = "") -> bool:
        """Write a document and return True. With a `lock`, return False without writing if another process has taken
        over the lock."""

        def write(files: Files) -> bool:
            with _partial(files, self._path(key)) as part:
                _write(files, part, text)
                if lock and _read(files, self._path(lock), 0, MAX_DOCUMENT_BYTES) != own.encode():
                    files.remove(part)
                    return False
                files.posix_rename(part, self._path(key))
            return True

        return self._with(write)

    def _write_new(self, key: str, text: str) -> bool:
        def write(files: Files) -> bool:
            try:
                with _partial(files, self._path(key)) as part:
                    _write(files, part, text)
                    files.rename(part, self._path(key))
            except OSError:
                if not exists(files, self._path(key)):
                    raise
                return False
            return True

        if self._with(write):
            return True
        document = self.read(key)  # equal content: this call wrote it without getting the answer
        return document is not None and document.text == text

    def _lock(self, key: str, own: str) -> None:
        """Acquire a lock by creating a document.

        A killed process leaves its lock behind. Such a lock is removed after `_STALE_LOCK_SECONDS`.
        """
        since, seen = time.monotonic(), ""
        while not self._write_new(key, own):
            current = self.read(key)
            if current is not None and current.text != seen:
                since, seen = time.monotonic(), current.text
            elif current is not None and time.monotonic() - since > _STALE_LOCK_SECONDS:
                self._with(partial(_remove_stale_lock, path=self._path(key), stale=current.text))
            time.sleep(_PAUSE_SECONDS)


def _remove_stale_lock(files: Files, path: str, stale: str) -> None:
    """Remove an abandoned lock. If the lock has since been created again by another process, put it back."""
    with suppress(OSError), _partial(files, path) as away:  # another process can remove it first
        files.posix_rename(path, away)
        if _read(files, away, 0, MAX_DOCUMENT_BYTES) == stale.encode():
            files.remove(away)
        else:
            files.rename(away, path)


@contextmanager
def _partial(files: Files, path: str) -> Iterator[str]:
    """Yield a new temporary path in the folder of a path, and create that folder. If the block raises, remove the
    temporary file."""
    above, name = posixpath.split(path)
    make_folder(files, above)
    part = posixpath.join(above, f".{name}.{uuid4().hex}.partial")
    try:
        yield part
    except BaseException:
        with suppress(Exception):  # the connection can be broken
            files.remove(part)
        raise


def _read(files: Files, path: str, offset: int, most: int) -> bytes | None:
    with suppress(FileNotFoundError), files.open(path, "rb") as file:
        file.seek(offset)
        return bytes(file.read(most))
    return None


def _write(files: Files, path: str, text: str) -> None:
    with files.open(path, "wb") as file:
        file.write(text.encode())


def _listed(files: Files, folder: str) -> Sequence[Any]:
    """Return the entries of a folder without hidden files. If the folder does not exist, return no entries."""
    with suppress(FileNotFoundError):
        return [each for each in files.listdir_attr(folder) if not each.filename.startswith(".")]
    return []


def _status(files: Files, path: str) -> Any:
    with suppress(FileNotFoundError):
        return files.stat(path)
    return None


def exists(files: Files, path: str) -> bool:
    return _status(files, path) is not None


def make_folder(files: Files, path: str) -> None:
    """Create a folder and its missing parents. Only the user can access the new folders."""
    if exists(files, path):
        return
    make_folder(files, posixpath.dirname(path))
    try:
        files.mkdir(path, _PERMISSIONS)
    except OSError:
        if not exists(files, path):  # another process can have created it
            raise


def open_store(address: str) -> Store:
    """Return the store at an address: a bucket for s3://BUCKET, and a folder that all hosts share for any other
    address."""
    return Bucket(place_of(address).bucket) if is_s3(address) else Folder(address)
