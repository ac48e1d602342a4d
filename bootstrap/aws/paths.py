"""Turns an object's name into a path below a folder on this machine, or refuses it.

GPU nodes can write any name into the data bucket, and what they write is copied to a folder of the user. To check for
`..` is not enough: an empty part makes a path absolute, and an existing link leads out of the folder.
"""

import os
from pathlib import Path

from common.errors import ShoalError

# Files have a longer name while they are copied, and a system's limits are 255 and 4,096.
_LONGEST_PART, _LONGEST_PATH = 200, 4000


def path_below(folder: Path, name: str) -> Path:
    """The path for an object of this name, whose parts are separated by `/`.

    No parent of it is a link or a file, and itself it is a file or does not exist. Otherwise raises ShoalError with the
    name and the reason.
    """
    path = folder
    if reason := _unfit(folder, name):
        raise ShoalError(f"{name}: {reason}")
    for part in name.split("/"):
        if path != folder and os.path.lexists(path) and not path.is_dir():
            raise ShoalError(f"{name}: {path} exists and is not a folder")
        path = path / part
        if path.is_symlink():
            raise ShoalError(f"{name}: {path} is a link")
    if path.is_dir():
        raise ShoalError(f"{name}: {path} is a folder")
    return path


def _unfit(folder: Path, name: str) -> str | None:
    """Why a name cannot be a path in any folder; None if it can."""
    parts = name.split("/")
    if not all(parts):
        return "a part of the name is empty"
    if any(part.startswith(".") for part in parts):
        return "a part of the name begins with a dot"
    if "\\" in name or not name.isprintable():
        return "the name has a backslash or a character that cannot be printed"
    try:
        lengths = [len(os.fsencode(part)) for part in parts]
    except UnicodeEncodeError:
        return "the name cannot be written in the encoding of this machine's file names"
    if max(lengths) > _LONGEST_PART or len(os.fsencode(folder.absolute())) + len(os.fsencode(name)) > _LONGEST_PATH:
        return "the name is too long"
    return None
