"""Lists the files at one address: a path, a folder, a pattern or an s3:// address. Records which files are left out.

Not every file in a folder is input: hidden files and results of an earlier command are skipped. Do not list S3 objects
by a prefix without a slash at the end, because `reviews` would also match `reviews-old/`.
"""

import glob
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from common.errors import DataError
from corpus.layout import COUNTS_NAME, DATASET_NAME
from corpus.reading import s3
from corpus.reading.s3 import S3Path, is_s3

Entry = tuple[str, int, str]
"""Address of a file, its size in bytes, and a value that changes if its content changes."""

PATTERN = re.compile(r"[*?\[]")
"""Character that is special in a pattern."""

_SKIPPED_NAMES = re.compile(
    r".+(~|\.(bak|old|orig|swp|part|partial|crdownload|tmp))|(readme|licen[cs]e|changelog)(\.\w+)?|desktop\.ini"
    rf"|{re.escape(DATASET_NAME)}|{re.escape(COUNTS_NAME)}",
    re.IGNORECASE,
)
"""Names of backups, of unfinished downloads, of files that describe a folder, and of results of an earlier command."""

_MARKERS = re.compile(r"_SUCCESS|_(common_)?metadata|_(started|committed)_.*|\..*\.crc|\.DS_Store")
"""Names of files that Hadoop, Spark and macOS write beside data; they are skipped without a note.

Hadoop hides all names with `.` and `_` (hiddenFileFilter in
https://github.com/apache/hadoop/tree/trunk/hadoop-mapreduce-project, 2026-11-30).
"""

_BY_NAME = "not data, by its name; to read such a file, give its own path"
_NOT_REGULAR = "not a regular file, nor a link to one"
_SAME = "another name of what is read already"
EMPTY = "empty"
_SHOWN = 3

LeftOut = dict[str, list[str]]
"""Addresses that were found and left out, by the reason."""

# https://github.com/delta-io/delta/blob/master/PROTOCOL.md, https://iceberg.apache.org/spec/#file-system-tables,
# https://hudi.apache.org/tech-specs/
_TABLE_LOG = re.compile(r"(.*)/(_delta_log|\.hoodie|metadata/[^/]*\.metadata\.json)(/|$)")
"""Path of a log in a table format (Delta Lake, Hudi or Iceberg). The log says which files of the folder are valid."""


def left_out_notes(left_out: LeftOut) -> list[str]:
    """Return a note about what was left out for each reason. It has the number and the first names."""
    notes = []
    for reason, addresses in left_out.items():
        names = list(dict.fromkeys(addresses))
        more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        if names:
            notes.append(f"{', '.join(names[:_SHOWN])}{more} {'was' if len(names) == 1 else 'were'} skipped: {reason}")
    return notes


def local_files(given: str, leave_out: str | None, left_out: LeftOut) -> list[Entry]:
    """Return the local files at a path, below a folder, or for a pattern."""
    if PATTERN.search(given) and not os.path.lexists(given):
        return _matching(given, leave_out, left_out)
    path = Path(given)
    try:
        known = path.stat()
        if stat.S_ISDIR(known.st_mode):
            return _files_below(path, leave_out, left_out)
        if not stat.S_ISREG(known.st_mode):
            raise DataError(f"{given} is not a regular file; copy its content to a file, and give that file")
        return [_entry(Path(absolute(path)), known)]
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{given}: no such file; check the path") from None
    except OSError as error:
        raise _unreadable(given, error) from error


def absolute(path: Path) -> str:
    """Return the absolute path of a file or folder.

    A link to a file keeps its own name, because the name of its target can lack the suffix of a format.
    """
    return str(path.resolve() if path.is_dir() else path.parent.resolve() / path.name)


def _unreadable(name: str, error: OSError) -> DataError:
    return DataError(f"cannot read {name}: {error.strerror}; correct the cause, or leave the path out of the input")


def _entry(path: Path, known: os.stat_result) -> Entry:
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(f"the name of {os.fsencode(path)!r} is not UTF-8; rename the file") from None
    return str(path), known.st_size, str(known.st_mtime_ns)


def _matching(pattern: str, leave_out: str | None, left_out: LeftOut) -> list[Entry]:
    """Return the files that a pattern matches, and the files in folders that it matches.

    Each file occurs once, and files in the folder of the results are left out.
    """
    results = _local_folder(leave_out)
    entries: dict[str, Entry] = {}
    for name in sorted(glob.glob(pattern, recursive=True)):  # noqa: PTH207  it leaves out hidden files, as a shell does
        path = Path(name)
        if results is not None and results in (path.resolve(), *path.resolve().parents):
            continue
        if path.is_dir():
            inside = walk(path, results, left_out)
        else:
            inside = _unless_skipped(local_files(name, leave_out, left_out), left_out)
        entries.update((os.path.realpath(entry[0]), entry) for entry in inside)
    if not entries:
        raise _no_files(f"no file matches {pattern}; check the pattern", left_out)
    return list(entries.values())


def _unless_skipped(entries: list[Entry], left_out: LeftOut) -> list[Entry]:
    """Return the entries that are not skipped because of their names."""
    skipped = [entry[0] for entry in entries if _SKIPPED_NAMES.fullmatch(entry[0].rpartition("/")[2])]
    left_out.setdefault(_BY_NAME, []).extend(skipped)
    return [entry for entry in entries if entry[0] not in skipped]


def _files_below(folder: Path, leave_out: str | None, left_out: LeftOut) -> list[Entry]:
    results = _local_folder(leave_out)
    if results is not None and results in (here := folder.resolve(), *here.parents):
        raise DataError(f"--output {results} contains the input {folder}; choose another --output")
    entries = walk(folder, results, left_out)
    if not entries:
        raise _no_files(f"the folder {folder} has no files; give a folder with review files", left_out)
    return entries


def _no_files(otherwise: str, left_out: LeftOut) -> DataError:
    notes = left_out_notes(left_out)
    return DataError(f"the input has no files to read: {'; '.join(notes)}" if notes else otherwise)


def walk(folder: Path, results: Path | None, left_out: LeftOut) -> list[Entry]:
    """Return the files below a folder and below linked folders, without those below `results`.

    Each file and each folder is read once, also if it has several names.
    """

    def fail(error: OSError) -> None:
        raise _unreadable(error.filename, error) from error

    def is_new(path: Path, known: os.stat_result) -> bool:
        again = (known.st_dev, known.st_ino) in seen
        seen.add((known.st_dev, known.st_ino))
        if again:
            left_out.setdefault(_SAME, []).append(str(path))
        return not again

    def is_read(path: Path) -> bool:
        return path.resolve() != results and not _is_hidden(str(path), left_out) and is_new(path, path.stat())

    top = folder.resolve()
    seen = {(top.stat().st_dev, top.stat().st_ino)}
    entries = []
    for parent, folders, names in os.walk(top, onerror=fail, followlinks=True):
        for name in folders:
            refuse_table(f"{parent}/{name}")
        folders[:] = [name for name in sorted(folders) if is_read(Path(parent) / name)]
        for path in (Path(parent) / name for name in sorted(names)):
            known = None if _is_hidden(str(path), left_out) else _regular(path, left_out)
            if known and is_new(path, known):
                entries.append(_entry(path, known))
    return _unless_skipped(entries, left_out)


def _regular(path: Path, left_out: LeftOut) -> os.stat_result | None:
    """Return the status of a regular file, or of the regular file that a link names."""
    with suppress(FileNotFoundError):  # a link to nothing, or a temporary file that was renamed when it was complete
        known = path.stat()
        if stat.S_ISREG(known.st_mode):
            return known
    left_out.setdefault(_NOT_REGULAR, []).append(str(path))
    return None


def _local_folder(leave_out: str | None) -> Path | None:
    return None if leave_out is None or is_s3(leave_out) else Path(leave_out).resolve()


def _is_hidden(address: str, left_out: LeftOut) -> bool:
    """Return whether a file or folder is skipped when it is found in a folder, and record it in `left_out`."""
    name = address.rpartition("/")[2]
    hidden = name.startswith((".", "_"))
    if hidden and not _MARKERS.fullmatch(name):
        left_out.setdefault(_BY_NAME, []).append(address)
    return hidden


def refuse_table(path: str) -> None:
    """Raise DataError if a path lies in the log of a table format: files of such a table can contain deleted rows."""
    if found := _TABLE_LOG.match(path):
        raise DataError(
            f"{found[1]} is a table of Delta Lake, Iceberg or Hudi, and its files may contain deleted rows; export "
            "the current rows to another folder, for example with Spark, and give that folder"
        )


def s3_files(given: str, leave_out: str | None, left_out: LeftOut) -> list[Entry]:
    """Return the S3 objects at an address, below a prefix, or for a pattern."""
    if not (found := s3_entries(given, leave_out, left_out)):
        what = "pattern" if PATTERN.search(s3.place_of(given).key) else "address"
        raise _no_files(f"there is no object at {given}; check the {what}", left_out)
    return found


def s3_entries(given: str, leave_out: str | None, left_out: LeftOut) -> list[Entry]:
    bucket, key = s3.place_of(given)
    exact = next(_list_s3(S3Path(bucket, key), 1), None) if key and not key.endswith("/") else None
    if exact and exact[0] == f"s3://{bucket}/{key}":
        return [exact]
    if pattern := PATTERN.search(key):
        if "**" in key:
            raise DataError(
                f"Shoal does not support ** on S3, as in {given}; give the prefix before it, which includes all "
                "objects below"
            )
        listed = _list_s3(S3Path(bucket, key[: pattern.start()]))
        matching = [entry for entry in listed if _key_matches(entry[0].removeprefix(f"s3://{bucket}/"), key)]
        return _unless_skipped(matching, left_out)
    prefix = f"{key.rstrip('/')}/" if key else ""
    below = f"s3://{bucket}/{prefix}"
    results = f"{leave_out.rstrip('/')}/" if leave_out is not None and is_s3(leave_out) else None
    entries = []
    for entry in _list_s3(S3Path(bucket, prefix)):
        refuse_table(entry[0])
        if entry[0].endswith("/") or (results and entry[0].startswith(results)):
            continue
        parts = entry[0].removeprefix(below).split("/")
        if not any(_is_hidden(below + "/".join(parts[:end]), left_out) for end in range(1, len(parts) + 1)):
            entries.append(entry)
    return _unless_skipped(entries, left_out)


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
        if s3.error_code(error) in ("NoSuchBucket", "404"):
            raise DataError(f"there is no bucket {place.bucket}; check the address {place}") from error
        raise
