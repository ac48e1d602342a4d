"""From what a person named to the files that are read: paths, folders, patterns and s3:// addresses to `Found`s.

The easy mistake is to take whatever lies in a folder: hidden files, the results of the run before and an archive
that nobody unpacked are no reviews, and each is either left out by a rule or refused in a sentence.
"""

import glob
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path, PurePosixPath

from corpus.errors import DataError
from corpus.formats import Format
from jobs.compression import compression
from jobs.s3_listing import PATTERN, Entry, find_objects, is_hidden
from jobs.storage import is_s3

EXPANSION = {".gz": 4, ".bz2": 5, ".xz": 5, ".zst": 4}
"""About how much larger what a packed file holds is, by the ending of its name."""

POSITIVE, NEGATIVE = 1, 0
"""The codes of files of one class."""
UNLABELLED = 0
"""The code of texts of which nobody says the class: it says nothing."""


def _check(*rules: tuple[bool, str]) -> None:
    for holds, sentence in rules:
        if not holds:
            raise DataError(sentence)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a person said about how the files are to be read; what is not said is found out from the files."""

    kind: str | None = None
    """json, csv, tsv, fasttext, text or parquet."""
    separator: str | None = None
    """What stands between the columns of a line."""
    text: tuple[str, ...] = ()
    """The fields, or numbers of columns from 1, that make the text."""
    rating: str | None = None
    """The field of the rating."""
    label: str | None = None
    """The field of the label; at most one of the two is given."""
    positive_label: str | None = None
    """The label of the positive class, all others being negative."""
    rating_range: tuple[int, int] = (1, 5)
    """The smallest and the largest rating, in steps."""
    rating_steps: int = 1
    """See corpus.settings.Settings, as for the following."""
    rating_fraction: bool = False

    def __post_init__(self) -> None:
        fields = self.fields
        _check(
            (
                self.rating is None or self.label is None,
                "--rating-field and --label-field exclude each other; give one",
            ),
            (
                self.rating is None or self.positive_label is None,
                "--positive-label goes with labels; give --label-field instead of --rating-field",
            ),
            (
                self.separator is None or self.kind in (None, "csv"),
                f"--separator goes with --format csv, or with none, not with {self.kind}",
            ),
            (self.separator != "", "--separator is empty; give the text that stands between two columns"),
            (self.separator is None or "\n" not in self.separator, "--separator holds a newline, which ends a record"),
            (
                self.kind not in ("text", "fasttext") or not fields,
                f"a line of --format {self.kind} has no fields; leave out the options that name some",
            ),
        )

    @property
    def fields(self) -> tuple[str, ...]:
        """All fields that were asked for."""
        return (*self.text, *filter(None, (self.rating, self.label)))


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What a person gave: addresses of files, folders or patterns by their use, and how to read them."""

    files: tuple[str, ...] = ()
    """To learn from and, where nothing else is to test with, to take a share of for the test."""
    test: tuple[str, ...] = ()
    """To test with."""
    positive: tuple[str, ...] = ()
    """Texts of the positive class."""
    negative: tuple[str, ...] = ()
    """Texts of the negative class."""
    unlabelled: tuple[str, ...] = ()
    """Texts alone, of which nobody says the class: not to learn from."""
    exclude: tuple[str, ...] = ()
    """Patterns of what is left out of all of them: of names, or of the ends of paths."""
    wanted: Wanted = field(default_factory=Wanted)

    def __post_init__(self) -> None:
        classes = bool(self.positive or self.negative)
        _check(
            (
                bool(self.files) or bool(self.unlabelled) or classes,
                "no input is given; name files, folders or patterns",
            ),
            (
                bool(self.positive) == bool(self.negative),
                "--positive-input and --negative-input go together; with one class there is nothing to learn",
            ),
            (
                not (classes and self.files),
                "--input says each text's class by a field, --positive-input and --negative-input by their files; "
                "give one or the other",
            ),
            (
                not (classes and self.test),
                "--test-input goes with --input; of files of one class a share is taken for the test (--test-share)",
            ),
            (
                not (classes and (self.wanted.rating or self.wanted.label or self.wanted.positive_label)),
                "the files of --positive-input and --negative-input say the class; leave out the options for ratings "
                "and labels",
            ),
        )


@dataclass(frozen=True, kw_only=True)
class Found:
    """A file that is to be read."""

    address: str
    """An absolute path, or s3://..."""
    size: int
    """Bytes, as it lies there."""
    identity: str
    """What changes when its content does: the time of its change in nanoseconds, or its ETag."""
    test: bool = False
    """Whether its texts are to test with."""
    code: int | None = None
    """The class of all of its texts, where the option that named it says one."""
    named: bool = True
    """Whether a person gave its very address; else a folder or a pattern did."""

    @property
    def compression(self) -> str | None:
        """The ending of the name that says how it is packed; None where it is not."""
        return compression(self.address)

    @property
    def plain_size(self) -> int:
        """About how many bytes it holds when it is unpacked."""
        return plain_size(self.address, self.size)


@dataclass(frozen=True, kw_only=True)
class Source(Found):
    """A file and how it is to be read."""

    format: Format


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The files that are meant, in the order in which they were given, and what a person should know of the others."""

    found: tuple[Found, ...]
    warnings: tuple[str, ...] = ()


def plain_size(name: str, size: int) -> int:
    """About how many bytes a file of this name and size holds when it is unpacked."""
    return size * EXPANSION.get(compression(name) or "", 1)


def find(inputs: Inputs, leave_out: str | None = None) -> Listing:
    """The files that are meant by what a person gave.

    Of a folder all files below it, without hidden ones (a name that begins with `.` or `_`) and without those below
    `leave_out`, the folder of the results. The results of an earlier run, wherever they are, are left out, and so is
    what `exclude` fits. A pattern is taken only where no file has its very name. Raises DataError for what does not
    exist, cannot be read, holds nothing, or is given twice.
    """
    found: list[Found] = []
    used: set[str] = set()
    for addresses, test, code in (
        (inputs.files, False, None),
        (inputs.test, True, None),
        (inputs.positive, False, POSITIVE),
        (inputs.negative, False, NEGATIVE),
        (inputs.unlabelled, False, UNLABELLED),
    ):
        for address in addresses:
            listed = find_objects(address, leave_out) if is_s3(address) else _files(address, leave_out)
            whole = address if is_s3(address) else str(Path(address).resolve())
            for name, size, identity in listed:
                if fitting := _fitting(name, whole, inputs.exclude):
                    used.update(fitting)
                    continue
                named = name == whole
                found.append(Found(address=name, size=size, identity=identity, test=test, code=code, named=named))
    if not found:
        raise DataError("--exclude leaves no file of the input; give fewer patterns")
    _check_twice(found)
    found, results = _without_results(found)
    if not found:
        raise DataError(f"the input holds nothing but the results in {', '.join(results)}; give files of reviews")
    if not sum(each.size for each in found):
        which = f"{found[0].address} is" if len(found) == 1 else f"all {len(found)} files of the input are"
        raise DataError(f"{which} empty; download again, or give others")
    return Listing(
        found=tuple(each for each in found if each.size),
        warnings=(
            *(f"{folder} holds the results of an earlier run, which are left out" for folder in results),
            *(f"{each.address} is empty and left out" for each in found if not each.size),
            *(f"--exclude {each} fits no file" for each in inputs.exclude if each not in used),
        ),
    )


def _fitting(address: str, given: str, patterns: Sequence[str]) -> list[str]:
    """The patterns that fit a file, or a folder that it is in below what a person gave."""
    path = PurePosixPath(address)
    root = PurePosixPath(*takewhile(lambda part: not PATTERN.search(part), PurePosixPath(given).parts))
    inside = [path, *(folder for folder in path.parents if root in folder.parents)]
    return [each for each in patterns if any(place.match(each) for place in inside)]


def _without_results(found: Sequence[Found]) -> tuple[list[Found], list[str]]:
    """The files but for datasets and the counts beside them, and the folders that hold those."""
    from jobs.merge import COUNTS_NAME, DATASET_NAME  # here: tasks, which import this module, list nothing

    folders: dict[str, set[str]] = {}
    for each in found:
        folder, _, name = each.address.rpartition("/")
        folders.setdefault(folder, set()).add(name)
    results = {DATASET_NAME, COUNTS_NAME}
    holding = [folder for folder, names in folders.items() if results <= names]
    left_out = {f"{folder}/{name}" for folder in holding for name in results}
    return [each for each in found if each.address not in left_out], holding


def _files(given: str, leave_out: str | None) -> list[Entry]:
    """Address, size and identity of the local files that a path, a folder or a pattern names."""
    if PATTERN.search(given) and not os.path.lexists(given):
        return _matching(given, leave_out)
    path = Path(given)
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return [_entry(each) for each in _inside(path, leave_out)]
        if not stat.S_ISREG(mode):
            raise DataError(f"{given} is no regular file; write what it holds to one, and give that")
        return [_entry(path)]
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{given}: no such file; check the path") from None
    except OSError as error:
        raise _unreadable(given, error) from error


def _unreadable(name: str, error: OSError) -> DataError:
    return DataError(f"cannot read {name}: {error.strerror}; mend that, or leave it out of the input")


def _entry(path: Path) -> Entry:
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(f"the name of {os.fsencode(path)!r} is no UTF-8; rename the file") from None
    known = path.stat()
    return str(path.resolve()), known.st_size, str(known.st_mtime_ns)


def _matching(pattern: str, leave_out: str | None) -> list[Entry]:
    """The files that a pattern matches, and those in the folders that it matches; each once, and no results."""
    results = _folder_of(leave_out)
    entries: dict[str, Entry] = {}
    for name in sorted(glob.glob(pattern, recursive=True)):  # noqa: PTH207  it leaves out hidden files, as a shell does
        path = Path(name)
        if results is None or results not in (path.resolve(), *path.resolve().parents):
            inside = map(_entry, _walk(path, results)) if path.is_dir() else _files(name, leave_out)
            entries.update((entry[0], entry) for entry in inside)
    if not entries:
        raise DataError(f"no file matches {pattern}; check the pattern")
    return list(entries.values())


def _inside(folder: Path, leave_out: str | None) -> list[Path]:
    """The regular files below a folder."""
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
        folders[:] = sorted(
            name for name in folders if not is_hidden(name) and (Path(parent) / name).resolve() != results
        )
        taken += [path for name in sorted(names) if not is_hidden(name) and (path := Path(parent) / name).is_file()]
    return taken


def _folder_of(leave_out: str | None) -> Path | None:
    return None if leave_out is None or is_s3(leave_out) else Path(leave_out).resolve()


def _check_twice(found: Sequence[Found]) -> None:
    seen: set[str] = set()
    for each in found:
        if each.address in seen:
            raise DataError(f"{each.address} is given twice; name each file once")
        seen.add(each.address)
