"""Creates folders that only this user, or only one process of this user, can write to.

Do not use an existing folder with a predictable name before checking its owner and permissions. In a world-writable
folder, another user can create a folder or link with that name, and would then control which files are read or removed.

The age of a temporary folder is no reason to remove it, because its process might still be running. Try the folder's
lock file instead: a process holds the lock until it exits.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from common.errors import DataError
from common.files import lock


def make_private_folder(path: Path, alternative: str) -> Path:
    """Create a folder that only this user can access, or accept an existing folder that only this user can write to.

    Return its path.

    `alternative` completes the error message: it describes what the user can do instead of removing the folder. Raises
    DataError if the path is not a folder, belongs to another user or is writable by other users, and OSError if
    creating the folder fails.
    """
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        found = path.lstat()
        for wrong, what in (
            (stat.S_ISLNK(found.st_mode), "is a link"),
            (not stat.S_ISDIR(found.st_mode), "is not a folder"),
            (found.st_uid != os.geteuid(), "belongs to another user"),
            (bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)), "can be written to by other users"),
        ):
            if wrong:
                raise DataError(f"{path} {what}, so Shoal does not trust it; remove it, or {alternative}") from None
    return path


def make_users_folder(name: str, alternative: str) -> Path:
    """Create a folder that only this user can access and that survives a reboot.

    Return its path; see `make_private_folder`. The folder is in /var/tmp, which is on disk. On many systems /tmp is in
    memory.
    """
    home = Path("/var/tmp")  # noqa: S108
    home = home if home.is_dir() else Path(tempfile.gettempdir())
    return make_private_folder(home / f"shoal-{name}-{os.geteuid()}", alternative)


@contextmanager
def locked(folder: Path, *, temporary: bool = False) -> Iterator[bool]:
    """Lock a folder during the `with` block, and yield whether the lock was free.

    The lock is released if the process dies. A `temporary` folder keeps its lock file as long as the folder exists,
    because later processes find leftover folders by their lock files.
    """
    path = folder.with_name(f"{folder.name}.lock")
    handle = None
    try:
        with suppress(BlockingIOError):
            handle = lock(path)
        yield handle is not None
    finally:
        if handle is not None:
            if not (temporary and os.path.lexists(folder)):
                path.unlink(missing_ok=True)
            os.close(handle)


@contextmanager
def temporary_folder(prefix: str, home: Path | None = None) -> Iterator[Path]:
    """Create a folder in `home`, with a name that begins with `prefix`, and yield its path.

    Remove the folder after the `with` block. Without `home`, the system's temporary folder is used. First removes the
    folders with the same prefix that killed processes left. Raises OSError if creating the folder fails.
    """
    home = home or Path(tempfile.gettempdir())
    _remove_leftovers(home, prefix)
    with ExitStack() as claim:
        folder = _new_name(home, prefix)
        while not claim.enter_context(locked(folder, temporary=True)):  # another process removes it as a leftover
            folder = _new_name(home, prefix)
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _new_name(home: Path, prefix: str) -> Path:
    return home / f"{prefix}{uuid4().hex}"


def _remove_leftovers(home: Path, prefix: str) -> None:
    """Remove the folders of processes that have exited.

    Folders without a lock file and folders of other users are kept.
    """
    for held in home.glob(f"{prefix}*.lock"):
        folder = held.with_suffix("")
        with suppress(OSError), locked(folder, temporary=True) as free:
            if free:
                shutil.rmtree(folder, ignore_errors=True)
