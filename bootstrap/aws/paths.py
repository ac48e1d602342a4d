"""Safe conversion of an object's name to a path below a folder on this machine.

GPU nodes can write any name into the data bucket, and these files are copied to a folder of the user. Checking for `..`
is not enough: an empty part makes a path absolute, and an existing link leads out of the folder.
"""

import os
from pathlib import Path

from common.errors import ShoalError

# A file has a longer name while it is copied, and the limits of file systems are 255 and 4,096 bytes.
_MAX_PART_BYTES, _MAX_PATH_BYTES = 200, 4000


def path_below(folder: Path, name: str) -> Path:
    """Return the path for an object with this name, where `/` separates the parts.

    No parent of the path is a link or a file, and the path itself is a file or does not exist. Raises ShoalError with
    the name and the reason for any other name.
    """
    path = folder
    if reason := _invalid_reason(folder, name):
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


def _invalid_reason(folder: Path, name: str) -> str | None:
    """Return why a name is invalid as a path in any folder, or None if it is valid."""
    parts = name.split("/")
    if not all(parts):
        return "a part of the name is empty"
    if any(part.startswith(".") for part in parts):
        return "a part of the name begins with a dot"
    if "\\" in name or not name.isprintable():
        return "the name has a backslash or a character that is not printable"
    try:
        lengths = [len(os.fsencode(part)) for part in parts]
    except UnicodeEncodeError:
        return "this machine's encoding of file names does not have all its characters"
    if max(lengths) > _MAX_PART_BYTES or len(os.fsencode(folder.absolute())) + len(os.fsencode(name)) > _MAX_PATH_BYTES:
        return "the name is too long"
    return None
