"""Writes files atomically, and locks files. The operating system releases a lock when the process that holds it exits.

Never write to a file under its final name, because a process can die at any moment. The previous holder of a lock might
remove the lock file. So check after locking that the path still names the locked file, as `lock` does.
"""

import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any
from uuid import uuid4

from common.display import size

DOCUMENT_BYTES = 16_000_000
"""Maximum size of a JSON document, such as the summary of a run."""
RECORD_BYTES = 250_000_000
"""Maximum size of a record of a run, which is read line by line, and of a vocabulary."""
TAIL_BYTES = 4 << 20
"""Size of the end of a log in which Shoal looks for the reason of a failure."""


def open_regular(path: Path | str, most: int | None = None) -> BufferedReader:
    """Open a regular file for reading. Use this for every file that another program can have written or replaced.

    Raises OSError for a folder, a pipe or a device, because reading from them might block or never end. Also raises
    OSError for a file of more than `most` bytes.
    """
    # Path.open has no opener, and the caller closes the file.
    file = open(path, "rb", opener=_open_without_waiting)  # noqa: SIM115
    state, fault = os.fstat(file.fileno()), None
    if not stat.S_ISREG(state.st_mode):
        fault = errno.EINVAL, "it is a pipe or a device and not a file"
    elif most is not None and state.st_size > most:
        fault = errno.EFBIG, f"it has {size(state.st_size)}, but such a file has at most {size(most)}"
    if fault:
        file.close()
        raise OSError(*fault, str(path))
    return file


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def read_regular(path: Path | str, most: int | None = None) -> bytes:
    """Return the content of a file. Raises OSError like `open_regular`."""
    with open_regular(path, most) as file:
        return file.read()


def read_tail(path: Path | str, most: int = TAIL_BYTES) -> str:
    """Return the end of a log, at most `most` bytes, as text. Raises OSError like `open_regular`."""
    with open_regular(path) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most))
        return file.read(most).decode("utf-8", "replace")


def require_replaceable(result: str, error: type[Exception], *, force: bool) -> None:
    """Raise `error` unless `force`: a command replaces only its own result of the same input.

    `result` is the beginning of the message, which names the result that would be replaced. The rule is the same for
    datasets, models, exports and reports.
    """
    if not force:
        raise error(f"{result}; add --force to replace it, or choose another --output")


def files_below(folder: Path) -> list[Path]:
    """Return the files in a folder and its subfolders, sorted.

    Skips subfolders that another program removes during the walk.

    In Python 3.11, `Path.rglob` raises FileNotFoundError for such subfolders. Raises OSError for an unreadable folder.
    """

    def fail(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    return sorted(Path(parent, name) for parent, _, names in os.walk(folder, onerror=fail) for name in names)


def partial_path(path: Path) -> Path:
    """Return a temporary path to write to until the file is complete.

    The path is unique, because two attempts of a task can run at the same time.
    """
    return path.with_name(f".{path.name}.{uuid4().hex}.partial")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to.

    After the `with` block, the file is renamed to `path`, or removed if the block raised an error.
    """
    partial = partial_path(path)
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write `content` to `path` atomically and flush it to disk. No other process may write `path` at the same time.

    If writing fails, keeps the old file and raises OSError. A killed process leaves one temporary file, which the next
    call replaces.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.unlink(missing_ok=True)  # a leftover of a killed process, or a link, which `open` would follow
        with partial.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def indented_json(content: Any) -> bytes:
    """Return the content as indented UTF-8 JSON. Raises ValueError for NaN and infinities."""
    return (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()


def lock(path: Path, *, is_folder: bool = False, wait: bool = False, kind: int = fcntl.LOCK_EX) -> int | None:
    """Lock a folder or a file. A missing file is created. A link to a file is not followed.

    `kind` is the kind of lock, as in `fcntl.flock`. Returns a file descriptor, which holds the lock until it is closed,
    or None if the lock's previous holder removed the path. Raises BlockingIOError if another process holds the lock and
    `wait` is false, and OSError if opening the path fails.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY if is_folder else os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    handle = os.open(path, flags, 0o600)
    try:
        fcntl.flock(handle, kind | (0 if wait else fcntl.LOCK_NB))
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None
