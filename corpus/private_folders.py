"""A folder under a name that anybody can know beforehand, which nobody else may have had a hand in.

The easy mistake is to take what is there: where all may write, another user can have put a folder, or a link, under
that name, and would then choose what is read, or which files are removed.
"""

import os
import stat
from pathlib import Path

from corpus.errors import DataError


def make_private_folder(path: Path, alternative: str) -> Path:
    """Make this folder for this user alone, or take the one that is there where only this user can write to it.

    `way_out`: what else the user can do than remove it. Raises DataError where it is another's, and OSError where it
    cannot be made.
    """
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        found = path.lstat()
        for wrong, what in (
            (stat.S_ISLNK(found.st_mode), "is a link"),
            (not stat.S_ISDIR(found.st_mode), "is no folder"),
            (found.st_uid != os.geteuid(), "belongs to another user"),
            (bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)), "can be written to by other users"),
        ):
            if wrong:
                raise DataError(f"{path} {what}, so Shoal does not trust it; remove it, or {alternative}") from None
    return path
