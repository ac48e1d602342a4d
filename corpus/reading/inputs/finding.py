"""Finds the input files at the paths, folders, patterns and s3:// addresses that the user gave.

Not every file in a folder is input: hidden files and results of an earlier command are skipped. Do not list S3 objects
by a prefix without a slash at the end, because `reviews` would also match `reviews-old/`.
"""

import glob
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path, PurePosixPath

from common.errors import DataError
from corpus.layout import COUNTS_NAME, DATASET_NAME
from corpus.reading import s3
from corpus.reading.compression import compression
from corpus.reading.s3 import S3Path, is_s3
from corpus.reading.sources import NEGATIVE, POSITIVE, UNLABELLED, InputFile, Inputs

Entry = tuple[str, int, str]
"""Address of a file, its size in bytes, and a value that changes if its content changes."""

_PATTERN = re.compile(r"[*?\[]")
"""Character that is special in a pattern."""

_CLASS_FOLDERS = {"pos": POSITIVE, "neg": NEGATIVE, "positive": POSITIVE, "negative": NEGATIVE}
"""For each name of a folder, the class of the texts in such a folder."""
_SKIPPED_NAMES = re.compile(
    r".+(~|\.(bak|old|orig|swp|part|partial|crdownload|tmp))|(readme|licen[cs]e|changelog)(\.\w+)?|desktop\.ini"
    rf"|{re.escape(DATASET_NAME)}|{re.escape(COUNTS_NAME)}",
    re.IGNORECASE,
)
"""Names of backups, of unfinished downloads, of files that describe a folder, and of results of an earlier command."""
# https://github.com/delta-io/delta/blob/master/PROTOCOL.md, https://iceberg.apache.org/spec/#file-system-tables,
# https://hudi.apache.org/tech-specs/
_TABLE_LOG = re.compile(r"(.*)/(_delta_log|\.hoodie|metadata/[^/]*\.metadata\.json)(/|$)")
"""Path of a log in a table format (Delta Lake, Hudi or Iceberg). The log says which files of the folder are valid."""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Input files, in the order in which the user gave them, and warnings about skipped files."""

    files: tuple[InputFile, ...]
    warnings: tuple[str, ...] = ()


def find_files(inputs: Inputs, leave_out: str | None = None) -> Listing:
    """Return the input files at the addresses of `inputs`.

    A folder stands for all files below it, except for hidden files (names that begin with `.` or `_`) and files below
    `leave_out`, the folder for the results. Backups (`reviews.csv~`), unfinished downloads, files that describe a
    folder (`README.md`), results of an earlier command, and files that match `inputs.exclude` are also skipped. An
    address with special characters is a pattern only if no file has that name. Raises DataError if an address does not
    exist, is unreadable or is given twice, or if all files are empty.
    """
    found: list[InputFile] = []
    used: set[str] = set()
    for addresses, test, code in (
        (inputs.files, False, None),
        (inputs.test, True, None),
        (inputs.positive, False, POSITIVE),
        (inputs.negative, False, NEGATIVE),
        (inputs.unlabelled, False, UNLABELLED),
    ):
        for address in addresses:
            listed = _s3_files(address, leave_out) if is_s3(address) else _local_files(address, leave_out)
            whole = address if is_s3(address) else str(Path(address).resolve())
            for name, size, identity in listed:
                if fitting := _matching_excludes(name, whole, inputs.exclude):
                    used.update(fitting)
                    continue
                _refuse_table(name)
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
    found, notes = _without_skipped(found)
    if not sum(each.size for each in found):
        which = f"{found[0].address} is" if len(found) == 1 else f"all {len(found)} files of the input are"
        raise DataError(f"{which} empty; download the input again, or give other files")
    return Listing(
        files=tuple(each for each in found if each.size),
        warnings=(
            *notes,
            *(f"{each.address} is empty and was skipped" for each in found if not each.size),
            *(f"--exclude {each} matches no file" for each in inputs.exclude if each not in used),
        ),
    )


def _class_of_folder(address: str) -> int | None:
    """Return the class of a text file in a folder that is named for a class, as in aclImdb.

    Return None for any other file.
    """
    path = PurePosixPath(address)
    is_text = path.with_suffix("" if compression(address) else path.suffix).suffix == ".txt"
    return _CLASS_FOLDERS.get(path.parent.name) if is_text else None


def current_files(address: str) -> list[InputFile]:
    """Return the files that exist now at an address, which is a file, a folder or a prefix.

    More files can be added later. The list can be empty. Raises DataError if a path or bucket does not exist or is
    unreadable.
    """
    if is_s3(address):
        with s3.explained_errors(address, "list"):
            entries = _s3_entries(address, None)
    elif Path(address).is_dir():
        # A file that disappeared after the folder was listed was a temporary file, which was renamed when it was
        # complete.
        entries = [entry for path in _walk(Path(address), None) for entry in _existing_entries(path)]
    else:
        entries = _local_files(address, None)
    return [InputFile(address=name, size=size, identity=identity) for name, size, identity in entries]


def _matching_excludes(address: str, given: str, patterns: Sequence[str]) -> list[str]:
    """Return the patterns that match a file or one of the folders that contain it.

    `given` is the address that the user gave. Only folders below it count.
    """
    path = PurePosixPath(address)
    root = PurePosixPath(*takewhile(lambda part: not _PATTERN.search(part), PurePosixPath(given).parts))
    inside = [path, *(folder for folder in path.parents if root in folder.parents)]
    return [each for each in patterns if any(place.match(each) for place in inside)]


def _without_skipped(found: Sequence[InputFile]) -> tuple[list[InputFile], list[str]]:
    """Return the files without those that are skipped because of their names, and a warning about each skipped file.

    A file is never skipped if the user gave its own address.
    """
    skipped = [
        each.address for each in found if not each.named and _SKIPPED_NAMES.fullmatch(each.address.rpartition("/")[2])
    ]
    notes = [f"{each} was skipped because of its name; give the path of the file itself to read it" for each in skipped]
    if len(skipped) == len(found):
        raise DataError(f"the input has no files to read: {notes[0]}")
    return [each for each in found if each.address not in skipped], notes


def _refuse_table(path: str) -> None:
    """Raise DataError if a path lies in the log of a table format: files of such a table can contain deleted rows."""
    if found := _TABLE_LOG.match(path):
        raise DataError(
            f"{found[1]} is a table of Delta Lake, Iceberg or Hudi, and its files may contain deleted rows; export "
            "the current rows to another folder, for example with Spark, and give that folder"
        )


def _local_files(given: str, leave_out: str | None) -> list[Entry]:
    """Return the local files at a path, below a folder, or for a pattern."""
    if _PATTERN.search(given) and not os.path.lexists(given):
        return _matching(given, leave_out)
    path = Path(given)
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return [_entry(each) for each in _files_below(path, leave_out)]
        if not stat.S_ISREG(mode):
            raise DataError(f"{given} is not a regular file; copy its content to a file, and give that file")
        return [_entry(path)]
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{given}: no such file; check the path") from None
    except OSError as error:
        raise _unreadable(given, error) from error


def _unreadable(name: str, error: OSError) -> DataError:
    return DataError(f"cannot read {name}: {error.strerror}; correct the cause, or leave the path out of the input")


def _entry(path: Path) -> Entry:
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(f"the name of {os.fsencode(path)!r} is not UTF-8; rename the file") from None
    known = path.stat()
    return str(path.resolve()), known.st_size, str(known.st_mtime_ns)


def _existing_entries(path: Path) -> list[Entry]:
    try:
        return [_entry(path)]
    except FileNotFoundError:
        return []


def _matching(pattern: str, leave_out: str | None) -> list[Entry]:
    """Return the files that a pattern matches, and the files in folders that it matches.

    Each file occurs once, and files in the folder of the results are left out.
    """
    results = _local_folder(leave_out)
    entries: dict[str, Entry] = {}
    for name in sorted(glob.glob(pattern, recursive=True)):  # noqa: PTH207  it leaves out hidden files, as a shell does
        path = Path(name)
        if results is None or results not in (path.resolve(), *path.resolve().parents):
            inside = map(_entry, _walk(path, results)) if path.is_dir() else _local_files(name, leave_out)
            entries.update((entry[0], entry) for entry in inside)
    if not entries:
        raise DataError(f"no file matches {pattern}; check the pattern")
    return list(entries.values())


def _files_below(folder: Path, leave_out: str | None) -> list[Path]:
    results = _local_folder(leave_out)
    if results is not None and results in (here := folder.resolve(), *here.parents):
        raise DataError(f"--output {results} contains the input {folder}; choose another --output")
    paths = _walk(folder, results)
    if not paths:
        raise DataError(f"the folder {folder} has no files; give a folder with review files")
    return paths


def _walk(folder: Path, results: Path | None) -> list[Path]:
    def fail(error: OSError) -> None:
        raise _unreadable(error.filename, error) from error

    paths = []
    for parent, folders, names in os.walk(folder, onerror=fail):
        for name in folders:
            _refuse_table(f"{parent}/{name}")
        folders[:] = sorted(
            name for name in folders if not _is_hidden(name) and (Path(parent) / name).resolve() != results
        )
        paths += [path for name in sorted(names) if not _is_hidden(name) and (path := Path(parent) / name).is_file()]
    return paths


def _local_folder(leave_out: str | None) -> Path | None:
    return None if leave_out is None or is_s3(leave_out) else Path(leave_out).resolve()


def _check_duplicates(found: Sequence[InputFile]) -> None:
    seen: set[str] = set()
    for each in found:
        if each.address in seen:
            raise DataError(f"{each.address} is given twice; name each file once")
        seen.add(each.address)


def _is_hidden(name: str) -> bool:
    """Return whether a file or folder with this name is skipped when it is found in a folder."""
    return name.startswith((".", "_"))


def _s3_files(given: str, leave_out: str | None) -> list[Entry]:
    """Return the S3 objects at an address, below a prefix, or for a pattern."""
    if not (found := _s3_entries(given, leave_out)):
        what = "pattern" if _PATTERN.search(s3.place_of(given).key) else "address"
        raise DataError(f"there is no object at {given}; check the {what}")
    return found


def _s3_entries(given: str, leave_out: str | None) -> list[Entry]:
    bucket, key = s3.place_of(given)
    exact = next(_list_s3(S3Path(bucket, key), 1), None) if key and not key.endswith("/") else None
    if exact and exact[0] == f"s3://{bucket}/{key}":
        return [exact]
    if pattern := _PATTERN.search(key):
        if "**" in key:
            raise DataError(
                f"Shoal does not support ** on S3, as in {given}; give the prefix before it, which includes all "
                "objects below"
            )
        listed = _list_s3(S3Path(bucket, key[: pattern.start()]))
        return [entry for entry in listed if _key_matches(entry[0].removeprefix(f"s3://{bucket}/"), key)]
    prefix = f"{key.rstrip('/')}/" if key else ""
    below = f"s3://{bucket}/{prefix}"
    entries = []
    for entry in _list_s3(S3Path(bucket, prefix)):
        _refuse_table(entry[0])
        if not entry[0].endswith("/") and not any(map(_is_hidden, entry[0].removeprefix(below).split("/"))):
            entries.append(entry)
    if leave_out is not None and is_s3(leave_out):
        entries = [entry for entry in entries if not entry[0].startswith(f"{leave_out.rstrip('/')}/")]
    return entries


def _key_matches(key: str, pattern: str) -> bool:
    """Return whether a key matches a pattern. The special characters `*`, `?` and `[...]` do not match a slash."""
    parts, patterns = key.split("/"), pattern.split("/")
    return bool(parts[-1]) and len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def _list_s3(place: S3Path, at_most: int | None = None) -> Iterator[Entry]:
    """Yield the objects with keys that begin with the key of `place`, in key order, at most `at_most` of them."""
    from botocore.exceptions import ClientError  # not at the top, because it is slow to load

    try:
        for each in s3.list_objects(s3.client(), place, at_most):
            yield str(S3Path(place.bucket, each["Key"])), each["Size"], each["ETag"].strip('"')
    except ClientError as error:
        if error.response["Error"].get("Code") in ("NoSuchBucket", "404"):
            raise DataError(f"there is no bucket {place.bucket}; check the address {place}") from error
        raise
