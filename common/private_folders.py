"""Folders that belong to this user alone, or to one process of this user.

Do not use an existing folder with a predictable name unchecked. In a folder that all users may write to, another user
can create a folder or a link of that name, and would then choose which files are read or removed. Do not remove a
folder because it is old: its process may live. The lock beside it shows that, because it ends with the process.
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

    `alternative`: what the user can do instead of removing it. Raises DataError where it is another user's or can be
    written to by others, and OSError where it cannot be made.
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
    """A folder of this name for this user alone, which outlives the machine's next start, as `make_private_folder`. It
    is on a disk: on many systems /tmp is in memory."""
    home = Path("/var/tmp")  # noqa: S108
    home = home if home.is_dir() else Path(tempfile.gettempdir())
    return make_private_folder(home / f"shoal-{name}-{os.geteuid()}", alternative)


@contextmanager
def locked(folder: Path, *, temporary: bool = False) -> Iterator[bool]:
    """Hold the lock of a folder, which ends with the process; gives whether it was free.

    The lock file of a `temporary` folder is removed only once the folder is gone: it shows the next process what to
    remove.
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
    """A new folder in `home`, or in the system's for temporary files, whose name begins with `prefix`; it is removed
    with its content.

    The folders with this prefix that killed processes left there are removed first. Raises OSError where it cannot be
    made.
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
    """Remove the folders of processes that have ended. One without a lock, or of another user, stays."""
    for held in home.glob(f"{prefix}*.lock"):
        folder = held.with_suffix("")
        with suppress(OSError), locked(folder, temporary=True) as free:
            if free:
                shutil.rmtree(folder, ignore_errors=True)
