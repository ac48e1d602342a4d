"""Files that appear whole or not at all, and locks that end with their process.

Do not write to the final name: a process can die at any moment. Do not lock a file whose holder removes it without
asking whether it is still there.
"""

import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4


def regular(path: Path) -> Path:
    """The path of a file or folder, which can be opened at once. Raises OSError for a pipe, whose writer may never
    come, and for a device, which may never end."""
    if stat.S_IFMT(path.stat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
        raise OSError(errno.EINVAL, "it is a pipe or a device and not a file", str(path))
    return path


def files_below(folder: Path) -> list[Path]:
    """The files below a folder that another program may be changing, sorted; a folder that goes meanwhile has none.

    `Path.rglob` raises FileNotFoundError then (Python 3.11). Raises OSError for a folder that cannot be read.
    """

    def fail(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    return sorted(Path(parent, name) for parent, _, names in os.walk(folder, onerror=fail) for name in names)


def partial_path(path: Path) -> Path:
    """A name to write to until the file is complete, a new one each time: two attempts of a task may run at once."""
    return path.with_name(f".{path.name}.{uuid4().hex}.partial")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path to write to; after the block the complete file is at `path`, and after an error no part of it is."""
    partial = partial_path(path)
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write `content` to `path`, of which this is the only writer, and wait until it is on the disk.

    Raises OSError, and then keeps the old file. A killed writer leaves one file, which the next one replaces.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.unlink(missing_ok=True)  # of a killed writer, or a link that would be followed
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
    """The content of a JSON file that people read, too. Raises ValueError for NaN and infinities."""
    return (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()


def lock(path: Path, *, is_folder: bool = False, wait: bool = False) -> int | None:
    """Lock a folder, or a file that is created if necessary; returns its handle, which holds the lock until it is
    closed, or None where the earlier holder has removed what is at `path`. A link to a file is not followed.

    Raises BlockingIOError where another process holds the lock, unless `wait` is given, and OSError.
    """
    kind = os.O_RDONLY | os.O_DIRECTORY if is_folder else os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    handle = os.open(path, kind, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None
