"""Finds the input files: paths, folders, patterns and s3:// addresses to `InputFile`s.

Not every file in a folder is input: hidden files and results of an earlier run are left out. Do not list S3 by a prefix
without its final slash, because `reviews` would take `reviews-old/` too.
"""

import glob
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path, PurePosixPath

from common.display import plural
from common.errors import DataError
from corpus.layout import COUNTS_NAME, DATASET_NAME
from corpus.reading import s3
from corpus.reading.compression import compression
from corpus.reading.inputs.tables import TABLE_LOGS, Entry, log_of, logs_above, logs_in, without_logs
from corpus.reading.s3 import S3Path, is_s3
from corpus.reading.sources import NEGATIVE, POSITIVE, UNLABELLED, InputFile, Inputs

_PATTERN = re.compile(r"[*?\[]")
"""Where a pattern begins."""

_CLASS_FOLDERS = {"pos": POSITIVE, "neg": NEGATIVE, "positive": POSITIVE, "negative": NEGATIVE}
"""The classes of the texts in folders of these names."""
_BACKUP = re.compile(r"(.+?)(~|\.(bak|old|orig|swp|save)|#)", re.IGNORECASE)
"""The name of a file that an editor or a person keeps as an older state of another."""
_ABOUT = re.compile(r"(readme|licen[cs]e|changelog)(\.(md|txt|rst|html?))?|desktop\.ini", re.IGNORECASE)
"""The name of a file that says something of its folder; as plain text its lines would be reviews."""
_DATA_NAME = r"\.(jsonl?|ndjson|csv|tsv|txt|parquet)(\.(gz|bz2|xz|zst))?"
_DATA = re.compile(rf"{_DATA_NAME}$", re.IGNORECASE)
_UNFINISHED = re.compile(rf".+({_DATA_NAME}\.(part|partial|filepart|download|tmp)|\.crdownload)", re.IGNORECASE)
"""The name of a file that a program is still writing, or was ended at."""
_STATE = re.compile(r"(.+?)( \(\d+\)(?=\.)|\.\d+(-\d\d-\d\d)?$|\.(gz|bz2|xz|zst|zip)$)(.*)")
"""The name of what may be another state of a file: of a download, a rotated or dated file, or one that is packed."""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The input files, in the order in which they were given, and warnings about the others."""

    files: tuple[InputFile, ...]
    warnings: tuple[str, ...] = ()


def find_files(inputs: Inputs, leave_out: str | None = None) -> Listing:
    """The files of the input.

    A folder stands for all files below it, without hidden ones (a name that begins with `.` or `_`) and without those
    below `leave_out`, the folder of the results. Backups (`reviews.csv~`), files about a folder (`README.md`),
    results of an earlier run and files that match `exclude` are left out.
    An address is a pattern only where no file has that name. Raises DataError for what does not exist, cannot be read,
    is empty, or is given twice.
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
            taken = []
            for entry in listed:
                if not log_of(entry[0]) and (fitting := _matching_excludes(entry[0], whole, inputs.exclude)):
                    used.update(fitting)
                else:
                    taken.append(entry)
            for name, size, identity in without_logs(taken):
                named = name == whole
                own = _class_of_folder(name) if code is None and not named else code
                found.append(InputFile(address=name, size=size, identity=identity, test=test, code=own, named=named))
    if inputs.positive and (unknown := next((each for each in found if each.code is None), None)):
        raise DataError(
            f"{unknown.address} has no class; beside --positive-input, --test-input takes folders with texts (.txt) in "
            f"folders of their classes: {', '.join(_CLASS_FOLDERS)}"
        )
    if not found:
        raise DataError("--exclude leaves no file of the input; give fewer patterns")
    _check_duplicates(found)
    found, notes = _without_others(found)
    notes += [note for address in inputs.addresses for note in _hidden_notes(address)]
    found, results = _without_results(found)
    if not found:
        raise DataError(f"the input holds nothing but the results in {', '.join(results)}; give files of reviews")
    if not sum(each.size for each in found):
        which = f"{found[0].address} is" if len(found) == 1 else f"all {len(found)} files of the input are"
        raise DataError(f"{which} empty; download again, or give others")
    return Listing(
        files=tuple(each for each in found if each.size),
        warnings=(
            *notes,
            *(f"{folder} holds the results of an earlier run, which are left out" for folder in results),
            *(f"{each.address} is empty and left out" for each in found if not each.size),
            *(f"--exclude {each} fits no file" for each in inputs.exclude if each not in used),
        ),
    )


def _class_of_folder(address: str) -> int | None:
    """The class of a text in a folder of its class, as of those of aclImdb; None where its name says none."""
    path = PurePosixPath(address)
    is_text = path.with_suffix("" if compression(address) else path.suffix).suffix == ".txt"
    return _CLASS_FOLDERS.get(path.parent.name) if is_text else None


def files_for_now(address: str) -> list[InputFile]:
    """The files that an address stands for while they grow in number: one file, or those below a folder or prefix.

    Of those there may be none yet. Raises DataError for a path or a bucket that does not exist or cannot be read.
    """
    if is_s3(address):
        with s3.explained_errors(address, "list"):
            entries = _s3_entries(address, None)
    elif Path(address).is_dir():
        # What is gone since the folder was listed had another name only while it was written.
        entries = [entry for path in _walk(Path(address), None) for entry in _entry_if_there(path)]
    else:
        entries = _local_files(address, None)
    return [InputFile(address=name, size=size, identity=identity) for name, size, identity in without_logs(entries)]


def _matching_excludes(address: str, given: str, patterns: Sequence[str]) -> list[str]:
    """The patterns that match a file, or a folder of it below the given address."""
    path = PurePosixPath(address)
    root = PurePosixPath(*takewhile(lambda part: not _PATTERN.search(part), PurePosixPath(given).parts))
    inside = [path, *(folder for folder in path.parents if root in folder.parents)]
    return [each for each in patterns if any(place.match(each) for place in inside)]


def _without_others(found: Sequence[InputFile]) -> tuple[list[InputFile], list[str]]:
    """The files without backups, unfinished downloads and files about a folder, which are no input by their names, and
    notes on these and on copies.

    Such a file that was named is left out only where it is a backup of another file of the input.
    """
    addresses = {each.address for each in found}
    others: dict[str, str] = {}
    for each in found:
        folder, _, name = each.address.rpartition("/")
        if (known := _BACKUP.fullmatch(name.removeprefix("#"))) and (
            not each.named or f"{folder}/{known[1]}" in addresses
        ):
            others[each.address] = f"{each.address} is a backup and left out; rename it to read it"
        elif _UNFINISHED.fullmatch(name) and not each.named:
            others[each.address] = f"{each.address} is an unfinished download and left out; rename it to read it"
        elif _ABOUT.fullmatch(name) and not each.named:
            others[each.address] = f"{each.address} is about its folder and left out; give its own name to read it"
    if len(others) == len(addresses):
        raise DataError(f"the input holds nothing but files such as this: {next(iter(others.values()))}")
    taken = [each for each in found if each.address not in others]
    return taken, [*others.values(), *_copy_notes(taken)]


def _copy_notes(files: Sequence[InputFile]) -> list[str]:
    """A note where files may be others of the input once more, by their names."""
    addresses = {each.address for each in files}
    states = {each.address: state for each in files if (state := _STATE.fullmatch(each.address))}
    copies = [(name, original) for name, state in states.items() if (original := state[1] + state[5]) in addresses]
    if not copies:
        return []
    more = f", and {plural(len(copies) - 1, 'more file')} of others" if copies[1:] else ""
    name, original = copies[0]
    return [f"{name} may be a copy of {original}{more}; leave out by --exclude what is to be read once"]


def _hidden_notes(given: str) -> list[str]:
    """A note on the hidden files in a folder that look like input by the ending of their names."""
    hidden = [
        path
        for path in sorted(Path(given).rglob("[._]*") if not is_s3(given) and Path(given).is_dir() else ())
        if _DATA.search(path.name) and not any(map(_is_hidden, path.relative_to(given).parts[:-1])) and path.is_file()
    ]
    more = f" and {plural(len(hidden) - 1, 'more hidden file')} are" if hidden[1:] else " is hidden and"
    return [f"{hidden[0]}{more} left out; rename what is to be read"] if hidden else []


def _without_results(found: Sequence[InputFile]) -> tuple[list[InputFile], list[str]]:
    """The files without datasets and the counts beside them, and the folders of these results."""
    folders: dict[str, set[str]] = {}
    for each in found:
        folder, _, name = each.address.rpartition("/")
        folders.setdefault(folder, set()).add(name)
    results = {DATASET_NAME, COUNTS_NAME}
    holding = [folder for folder, names in folders.items() if results <= names]
    left_out = {f"{folder}/{name}" for folder in holding for name in results}
    return [each for each in found if each.address not in left_out], holding


def _local_files(given: str, leave_out: str | None) -> list[Entry]:
    """Address, size and identity of the local files that a path, a folder or a pattern names."""
    if _PATTERN.search(given) and not os.path.lexists(given):
        return _matching(given, leave_out)
    path = Path(given)
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return [_entry(each) for each in (*_files_below(path, leave_out), *logs_above(path.resolve() / "file"))]
        if not stat.S_ISREG(mode):
            raise DataError(f"{given} is not a regular file; copy its content to one, and give that")
        return [_entry(each) for each in (path, *logs_above(path.resolve()))]
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{given}: no such file; check the path") from None
    except OSError as error:
        raise _unreadable(given, error) from error


def _unreadable(name: str, error: OSError) -> DataError:
    return DataError(f"cannot read {name}: {error.strerror}; correct that, or leave it out of the input")


def _entry(path: Path) -> Entry:
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(f"the name of {os.fsencode(path)!r} is not UTF-8; rename the file") from None
    known = path.stat()
    return str(path.resolve()), known.st_size, str(known.st_mtime_ns)


def _entry_if_there(path: Path) -> list[Entry]:
    try:
        return [_entry(path)]
    except FileNotFoundError:
        return []


def _matching(pattern: str, leave_out: str | None) -> list[Entry]:
    """The files that a pattern matches, and those in the folders that it matches; each once, and no results."""
    results = _folder_of(leave_out)
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
    results = _folder_of(leave_out)
    if results is not None and results in (here := folder.resolve(), *here.parents):
        raise DataError(f"the results would go to {results}, which holds the input {folder}; choose another --output")
    taken = _walk(folder, results)
    if not taken:
        raise DataError(f"the folder {folder} holds no files; give one with review files")
    return taken


def _walk(folder: Path, results: Path | None) -> list[Path]:
    def fail(error: OSError) -> None:
        raise _unreadable(error.filename, error) from error

    taken = []
    for parent, folders, names in os.walk(folder, onerror=fail):
        taken += logs_in(Path(parent))
        folders[:] = sorted(
            name for name in folders if not _is_hidden(name) and (Path(parent) / name).resolve() != results
        )
        taken += [path for name in sorted(names) if not _is_hidden(name) and (path := Path(parent) / name).is_file()]
    return taken


def _folder_of(leave_out: str | None) -> Path | None:
    return None if leave_out is None or is_s3(leave_out) else Path(leave_out).resolve()


def _check_duplicates(found: Sequence[InputFile]) -> None:
    seen: set[str] = set()
    for each in found:
        if each.address in seen:
            raise DataError(f"{each.address} is given twice; name each file once")
        seen.add(each.address)


def _is_hidden(name: str) -> bool:
    """Whether a file or folder of this name is skipped where its folder is given."""
    return name.startswith((".", "_"))


def _s3_files(given: str, leave_out: str | None) -> list[Entry]:
    """Address, size and identity of the objects that an address, a prefix or a pattern names."""
    if not (found := _s3_entries(given, leave_out)):
        what = "pattern" if _PATTERN.search(s3.place_of(given).key) else "address"
        raise DataError(f"there is nothing at {given}; check the {what}")
    return found


def _s3_entries(given: str, leave_out: str | None) -> list[Entry]:
    bucket, key = s3.place_of(given)
    exact = next(_list_s3(S3Path(bucket, key), 1), None) if key and not key.endswith("/") else None
    if exact and exact[0] == f"s3://{bucket}/{key}":
        return [exact]
    if pattern := _PATTERN.search(key):
        matching, start = key_pattern(key), len(f"s3://{bucket}/")
        listed = list(_list_s3(S3Path(bucket, key[: pattern.start()])))
        entries = [entry for entry in listed if matching.fullmatch(entry[0], start) and not entry[0].endswith("/")]
        return [*entries, *(entry for entry in listed if entries and log_of(entry[0]))]
    prefix = f"{key.rstrip('/')}/" if key else ""
    below = f"s3://{bucket}/{prefix}"
    entries = [
        entry
        for entry in _list_s3(S3Path(bucket, prefix))
        if not entry[0].endswith("/")
        and (log_of(entry[0]) or not any(map(_is_hidden, entry[0].removeprefix(below).split("/"))))
    ]
    if leave_out is not None and is_s3(leave_out):
        entries = [entry for entry in entries if not entry[0].startswith(f"{leave_out.rstrip('/')}/")]
    return entries + _s3_logs_above(S3Path(bucket, prefix)) if entries else entries


def _s3_logs_above(place: S3Path) -> list[Entry]:
    """As `logs_above`, for a prefix; none where its parent may not be listed."""
    from botocore.exceptions import ClientError  # here, because it takes long to load

    path = PurePosixPath(place.key)
    if path.name != "data" and "=" not in path.name:
        return []
    above = [
        S3Path(place.bucket, str(path.parent / PurePosixPath(log).parent) + "/") for log in TABLE_LOGS if "/" in log
    ]
    with suppress(ClientError):
        if logs := [entry for each in above for entry in islice(filter(_is_log, _list_s3(each)), 1)]:
            return logs
    return _s3_logs_above(S3Path(place.bucket, str(path.parent)))


def _is_log(entry: Entry) -> bool:
    return log_of(entry[0]) is not None


def _list_s3(place: S3Path, at_most: int | None = None) -> Iterator[Entry]:
    """The objects whose keys start with the key of `place`, in the order of their keys; at most `at_most`."""
    from botocore.exceptions import ClientError  # here, because it takes long to load

    try:
        for each in s3.list_objects(s3.client(), place, at_most):
            yield str(S3Path(place.bucket, each["Key"])), each["Size"], each["ETag"].strip('"')
    except ClientError as error:
        if error.response["Error"].get("Code") in ("NoSuchBucket", "404"):
            raise DataError(f"there is no bucket {place.bucket}; check the address {place}") from error
        raise


def key_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern of keys as a regular expression: `*`, `?` and `[...]` do not match a slash, `**` does."""
    out = []
    for token in re.findall(r"\*\*/|\*\*|\*|\?|\[!?[^\]!/][^\]/]*\]|.", pattern, re.DOTALL):
        if len(token) > 1 and token.startswith("["):
            negated, among = token[1] == "!", token[1:-1].removeprefix("!")
            out.append(f"[{'^/' if negated else ''}{_ranges(among)}]")
        else:
            out.append({"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(token, re.escape(token)))
    return re.compile("".join(out), re.DOTALL)


def _ranges(among: str) -> str:
    """The content of brackets, with `a-c` as a range only where it rises."""
    return re.sub(
        r"(.)-(.)|.",
        lambda found: (
            f"{re.escape(found[1])}-{re.escape(found[2])}" if found[1] and found[1] <= found[2] else re.escape(found[0])
        ),
        among,
        flags=re.DOTALL,
    )
