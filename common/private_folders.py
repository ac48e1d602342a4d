"""Folders that belong to this user alone, or to one process of this user.

Do not use an existing folder with a predictable name unchecked. In a world-writable folder another user can create a
folder or link of that name, and would then control which files are read or removed. Do not remove a folder because it
is old: its process may still run. The folder's lock file shows whether it does, because the lock ends with the process.
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
    """Create the folder for this user alone, or accept an existing one that only this user can write to.

    `alternative`: what the user can do instead of removing it. Raises DataError if the folder belongs to another user
    or is writable by others, and OSError if creating it fails.
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
    """Create a folder for this user alone that survives a reboot, by `make_private_folder`, and return its path.

    It lies in /var/tmp, on disk: on many systems /tmp is in memory.
    """
    home = Path("/var/tmp")  # noqa: S108
    home = home if home.is_dir() else Path(tempfile.gettempdir())
    return make_private_folder(home / f"shoal-{name}-{os.geteuid()}", alternative)


@contextmanager
def locked(folder: Path, *, temporary: bool = False) -> Iterator[bool]:
    """Hold a folder's lock, which ends with the process; yield whether the lock was free.

    The lock file of a `temporary` folder is removed only after the folder: it marks leftovers for the next process.
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
    """Create a folder with this prefix in `home` (default: the system's temporary folder), and remove it afterwards.

    First removes folders with this prefix that killed processes left. Raises OSError if creating the folder fails.
    """
    home = home or Path(tempfile.gettempdir())
    _remove_leftovers(home, prefix)
    with ExitStack() as claim:
        folder = _new_name(home, prefix)
        while not claim.enter_context(locked(folder, temporary=True)):  # another process took it for a leftover
            folder = _new_name(home, prefix)
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _new_name(home: Path, prefix: str) -> Path:
    return home / f"{prefix}{uuid4().hex}"


def _remove_leftovers(home: Path, prefix: str) -> None:
    """Remove the folders of processes that have ended, but no folder without a lock file or of another user."""
    for held in home.glob(f"{prefix}*.lock"):
        folder = held.with_suffix("")
        with suppress(OSError), locked(folder, temporary=True) as free:
            if free:
                shutil.rmtree(folder, ignore_errors=True)
