"""Finds the folders of runs, and other files, below the folders that a user gives."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from common.errors import ExperimentError
from trainer.output.run_files import RECORD

_MAX_DEPTH = 4
"""Maximum depth of the search below a given folder."""
_NUMBERS = re.compile(r"([0-9]{1,18})")


def find_runs(paths: Sequence[Path]) -> list[Path]:
    """Return the distinct folders of runs at and below these paths, in order.

    Raises ExperimentError if there is no run at or below one of the paths.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        if not path.exists():
            raise ExperimentError(
                f"{path} does not exist; give the --output of `shoal train`, or a folder with several runs"
            )
        below = find_below([path], RECORD)
        if not below:
            raise ExperimentError(
                f"{path} has no {RECORD}, and neither has any folder below it; give the --output of `shoal train`"
            )
        found |= {each.resolve(): each for each in below}
    return list(found.values())


def find_below(paths: Sequence[Path], name: str) -> list[Path]:
    """Return the distinct folders, at and below these paths, that contain a file `name`, in order."""
    matches = [
        each for path in paths if path.is_dir() for each in sorted(_below(path, name, _MAX_DEPTH), key=_by_numbers)
    ]
    return list({each.resolve(): each for each in matches}.values())


def _below(folder: Path, name: str, depth: int) -> Iterator[Path]:
    place = folder / name
    if os.path.lexists(place) and not place.is_dir():  # reading reports a pipe, or a link that leads nowhere
        yield folder
    elif depth:
        for each in folder.iterdir():
            if each.is_dir() and not each.is_symlink():
                yield from _below(each, name, depth - 1)


def _by_numbers(path: Path) -> list[tuple[int, str]]:
    """Return a sort key for paths that places run-10 after run-9."""
    return [(int(each), "") if each.isascii() and each.isdigit() else (-1, each) for each in _NUMBERS.split(str(path))]
