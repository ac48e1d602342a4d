"""Folders with a predictable name that belong to this user alone.

Do not use an existing folder unchecked. In a folder that all users may write to, another user can create a folder or a
link of that name, and would then choose which files are read or removed.
"""

import os
import stat
from pathlib import Path

from corpus.errors import DataError


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
