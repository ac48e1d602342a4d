"""Finds the input files at the addresses that the user gave, and checks that none is read twice.

The module `listing` lists the files at one address.
"""

import os
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path, PurePosixPath

from common.display import plural
from common.errors import DataError
from corpus.reading import s3
from corpus.reading.compression import compression
from corpus.reading.inputs.listing import (
    EMPTY,
    PATTERN,
    LeftOut,
    absolute,
    left_out_notes,
    local_files,
    refuse_table,
    s3_entries,
    s3_files,
    walk,
)
from corpus.reading.s3 import is_s3
from corpus.reading.sources import NEGATIVE, POSITIVE, UNLABELLED, InputFile, Inputs

_CLASS_FOLDERS = {"pos": POSITIVE, "neg": NEGATIVE, "positive": POSITIVE, "negative": NEGATIVE}
"""For each name of a folder, the class of the texts in such a folder."""


def find_files(inputs: Inputs, leave_out: str | None = None) -> tuple[list[InputFile], list[str]]:
    """Return the input files at the addresses of `inputs`, in their order, and warnings about skipped files.

    A folder stands for all files below it, also for those below linked folders, except for files below `leave_out`, the
    folder for the results. Files that match `inputs.exclude` are left out. So are, in folders, hidden files (names that
    begin with `.` or `_`), backups (`reviews.csv~`), unfinished downloads, files that describe a folder (`README.md`),
    and results of an earlier command; the warnings name them. An address with special characters is a pattern only if
    no file has that name. Raises DataError if an address does not exist, is unreadable or is given twice, if all files
    are empty, or if a file also exists compressed.
    """
    found: list[InputFile] = []
    used: set[str] = set()
    left_out: LeftOut = {}
    for addresses, test, code in (
        (inputs.files, False, None),
        (inputs.test, True, None),
        (inputs.positive, False, POSITIVE),
        (inputs.negative, False, NEGATIVE),
        (inputs.unlabelled, False, UNLABELLED),
    ):
        for address in addresses:
            listed = (s3_files if is_s3(address) else local_files)(address, leave_out, left_out)
            whole = address if is_s3(address) else absolute(Path(address))
            for name, size, identity in listed:
                if fitting := _matching_excludes(name, whole, inputs.exclude):
                    used.update(fitting)
                    continue
                refuse_table(name)
                named = name == whole
                class_code = _class_of_folder(name) if code is None and not named else code
                found.append(
                    InputFile(address=name, size=size, identity=identity, test=test, code=class_code, named=named)
                )
    if inputs.positive and (unknown := next((each for each in found if each.code is None), None)):
        raise DataError(
            f"{unknown.address} has no class; with --positive-input, --test-input needs texts (.txt) in folders named "
            f"for their classes: {', '.join(_CLASS_FOLDERS)}"
        )
    if not found:
        raise DataError("--exclude matches all files of the input; give fewer patterns")
    _check_duplicates(found)
    refuse_packed_twice([each.address for each in found])
    if not sum(each.size for each in found):
        which = f"{found[0].address} is" if len(found) == 1 else f"all {len(found)} files of the input are"
        raise DataError(f"{which} empty; download the input again, or give other files")
    left_out[EMPTY] = [each.address for each in found if not each.size]
    unused = [f"--exclude {each} leaves out no file" for each in inputs.exclude if each not in used]
    return [each for each in found if each.size], [*left_out_notes(left_out), *unused]


def _class_of_folder(address: str) -> int | None:
    """Return the class of a text file in a folder that is named for a class, as in aclImdb.

    Return None for any other file.
    """
    path = PurePosixPath(address)
    is_text = path.with_suffix("" if compression(address) else path.suffix).suffix == ".txt"
    return _CLASS_FOLDERS.get(path.parent.name) if is_text else None


def current_files(address: str, left_out: LeftOut | None = None) -> list[InputFile]:
    """Return the files that exist now at an address, which is a file, a folder or a prefix.

    More files can be added later. The list can be empty. `left_out` receives the files that are left out. Raises
    DataError if a path or bucket does not exist or is unreadable.
    """
    left_out = {} if left_out is None else left_out
    if is_s3(address):
        with s3.explained_errors(address, "list"):
            entries = s3_entries(address, None, left_out)
    elif Path(address).is_dir():
        entries = walk(Path(address), None, left_out)
    else:
        entries = local_files(address, None, left_out)
    return [InputFile(address=name, size=size, identity=identity) for name, size, identity in entries]


def check_sources(addresses: Iterable[str]) -> list[str]:
    """Return notes about the files that a text stream leaves out now.

    Raises DataError if a file also exists compressed, or if an address is unreadable.
    """
    left_out: LeftOut = {}
    files = [file.address for address in addresses for file in current_files(address, left_out)]
    refuse_packed_twice(files, "move one to another folder")
    return left_out_notes(left_out)


def _matching_excludes(address: str, given: str, patterns: Sequence[str]) -> list[str]:
    """Return the patterns that match a file or one of the folders that contain it.

    `given` is the address that the user gave. Only folders below it count.
    """
    path = PurePosixPath(address)
    root = PurePosixPath(*takewhile(lambda part: not PATTERN.search(part), PurePosixPath(given).parts))
    inside = [path, *(folder for folder in path.parents if root in folder.parents)]
    return [each for each in patterns if any(place.match(each) for place in inside)]


def _check_duplicates(found: Sequence[InputFile]) -> None:
    seen: set[str] = set()
    for each in found:
        real = each.address if is_s3(each.address) else os.path.realpath(each.address)
        if real in seen:
            raise DataError(f"{each.address} is given twice; name each file once")
        seen.add(real)


def refuse_packed_twice(addresses: Sequence[str], advice: str = "leave one out with --exclude") -> None:
    """Raise DataError if a file also exists compressed, because its texts would count twice."""
    by_name: dict[str, list[str]] = {}
    for address in addresses:
        suffix = compression(address) or ""
        by_name.setdefault(address[: len(address) - len(suffix)], []).append(address)
    twice = [sorted(each) for each in by_name.values() if len(each) > 1]
    if not twice:
        return
    more = f" ({plural(len(twice) - 1, 'more pair')})" if twice[1:] else ""
    raise DataError(
        f"{twice[0][0]} and {twice[0][1]} may be the same file, plain and compressed, and count twice{more}; "
        f"{advice}, or rename one if they differ"
    )
