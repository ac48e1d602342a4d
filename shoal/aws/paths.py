"""Safe conversion of an object's name into a path below a folder on this machine.

GPU nodes can write objects with any name to the data bucket, and Shoal copies these objects to a folder of the user. A
check for `..` is not enough, because an empty part can make a path absolute, and an existing symbolic link can lead out
of the folder.
"""

import os
from pathlib import Path

from common.display import is_printable
from common.errors import ShoalError

# The limits of file systems are 255 bytes per name and 4,096 bytes per path. A file has a longer name while it is
# copied.
_MAX_PART_BYTES, _MAX_PATH_BYTES = 200, 4000


def path_below(folder: Path, name: str) -> Path:
    """Return the path below `folder` for an object. `/` separates the parts of the object's name.

    Raises ShoalError, which states the name and the reason, if the name is invalid. The path must be a file or not
    exist, and its parents below `folder` must be folders. Symbolic links are refused.
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
    """Return the reason why a name is invalid as a path below `folder`, or None if it is valid. Existing files are not
    checked."""
    parts = name.split("/")
    if not all(parts):
        return "a part of the name is empty"
    if any(part.startswith(".") for part in parts):
        return "a part of the name begins with a dot"
    if "\\" in name or not is_printable(name):
        return "the name has a backslash or a character that is not printable"
    try:
        lengths = [len(os.fsencode(part)) for part in parts]
    except UnicodeEncodeError:
        return "this machine's encoding of file names does not support all characters of the name"
    if max(lengths) > _MAX_PART_BYTES or len(os.fsencode(folder.absolute())) + len(os.fsencode(name)) > _MAX_PATH_BYTES:
        return "the name is too long"
    return None
