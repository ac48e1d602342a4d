"""An object's name as a path below a folder here, or not at all.

GPU nodes write to the data bucket whatever they like, and what they write is copied to a folder of the user's. The easy
mistake is to look for `..` alone: an empty part makes a path absolute, and a link that is there already leads out.
"""

import os
from pathlib import Path

from bootstrap.errors import ShoalError
from corpus.display import printable

# Files have a longer name while they are copied, and a system's limits are 255 and 4,096.
_LONGEST_PART, _LONGEST_PATH = 200, 4000


def path_below(folder: Path, name: str) -> Path:
    """The path for an object of this name, its parts parted by `/`.

    Nothing on the way to it is a link or a file, and nothing but a file is at its end. Raises ShoalError with the name,
    fit to be shown, and the reason when there can be no such path.
    """
    path = folder
    if reason := _unfit(folder, name):
        raise ShoalError(f"{printable(name)}: {reason}")
    for part in name.split("/"):
        if path != folder and os.path.lexists(path) and not path.is_dir():
            raise ShoalError(f"{printable(name)}: {path} is there, and is no folder")
        path = path / part
        if path.is_symlink():
            raise ShoalError(f"{printable(name)}: {path} is a link")
    if path.is_dir():
        raise ShoalError(f"{printable(name)}: {path} is a folder")
    return path


def _unfit(folder: Path, name: str) -> str | None:
    """Why a name can be no path, whatever is in the folder."""
    parts = name.split("/")
    if not all(parts):
        return "a part of the name is empty"
    if any(part.startswith(".") for part in parts):
        return "a part of the name begins with a dot"
    if "\\" in name or not name.isprintable():
        return "the name holds a backslash, or what does not print"
    try:
        lengths = [len(os.fsencode(part)) for part in parts]
    except UnicodeEncodeError:
        return "the name cannot be written in the encoding of this machine's file names"
    if max(lengths) > _LONGEST_PART or len(os.fsencode(folder.absolute())) + len(os.fsencode(name)) > _LONGEST_PATH:
        return "the name is too long"
    return None
