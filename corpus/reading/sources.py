"""Describes the input of a run: the user's addresses and options, the files, and ranges of files.

An option applies to all files. Shoal detects only the settings that no option gives.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from common.errors import require_rules
from corpus.dataset_settings import Settings
from corpus.reading.compression import compression
from corpus.reading.formats import Format, class_name

EXPANSION = {".gz": 4, ".bz2": 5, ".xz": 5, ".zst": 4}
"""Usual ratio of decompressed to compressed size, by file suffix."""

POSITIVE, NEGATIVE = 1, 0
"""Codes of files with texts of one class."""
UNLABELLED = 0
"""Code of texts of unknown class. It has no meaning."""


FORMAT_CHOICES = ("json", "csv", "tsv", "fasttext", "text", "parquet")
"""Values of --format."""

QUOTING_CHOICES = ("doubled", "none")
"""Values of --quoting. `doubled`: a quote inside a quoted value is doubled. `none`: nothing is quoted."""

WHOLE = -1
"""End of a range that covers a whole file."""


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """User's options for reading files. Settings that they leave open are detected from the files."""

    kind: str | None = None
    """One of FORMAT_CHOICES."""
    separator: str | None = None
    """Separator of columns."""
    quoting: str | None = None
    """One of QUOTING_CHOICES."""
    text: tuple[str, ...] = ()
    """Text fields, or column numbers from 1."""
    rating: str | None = None
    """Rating field."""
    label: str | None = None
    """Label field. It excludes `rating`."""
    positive_label: str | None = None
    """Label of the positive class. All other labels are negative."""
    keep: tuple[str, ...] = ()
    """Further fields, or column numbers, to return unchanged."""
    classes: tuple[str, ...] = ()
    """Labels of more than two classes, in the order of their codes, with or without fastText's `__label__`."""
    others: bool = False
    """Whether `classes` are those of a model, so that texts may have other labels."""
    rating_range: tuple[int, int] = (1, 5)
    """Smallest and largest rating, in steps."""
    rating_steps: int = 1
    """See corpus.dataset_settings.Settings, also for `rating_fraction`."""
    rating_fraction: bool = False

    def __post_init__(self) -> None:
        fields = self.fields
        require_rules(
            (
                self.rating is None or self.label is None,
                "--rating-field and --label-field exclude each other; give one",
            ),
            (
                self.rating is None or self.positive_label is None,
                "--positive-label requires labels; give --label-field instead of --rating-field",
            ),
            (
                not self.classes or (self.rating is None and self.positive_label is None),
                "--classes excludes --rating-field and --positive-label; leave them out",
            ),
            (
                self.separator is None or self.kind in (None, "csv"),
                f"--separator requires --format csv or no --format, not {self.kind}",
            ),
            (
                self.quoting is None or self.kind in (None, "csv", "tsv"),
                f"--quoting requires --format csv, tsv or no --format, not {self.kind}",
            ),
            (self.separator != "", "--separator is empty; give the text between two columns"),
            (
                self.separator is None or "\n" not in self.separator,
                "--separator contains a newline, which ends a record; give another one",
            ),
            (
                self.kind not in ("text", "fasttext") or not fields,
                f"--format {self.kind} has no fields; leave out the options that name fields",
            ),
        )
        if self.classes:
            Settings(ragged=True, labelled=True, classes=self.class_names)  # checks the names

    @property
    def fields(self) -> tuple[str, ...]:
        return (*self.text, *filter(None, (self.rating, self.label)), *self.keep)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, normalised by `formats.class_name`."""
        return tuple(map(class_name, self.classes))


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Addresses of files, folders or patterns that the user gave, by use, and the options for reading them."""

    files: tuple[str, ...] = ()
    """Training texts. Without `test`, a share of them is the test set."""
    test: tuple[str, ...] = ()
    """Test texts."""
    positive: tuple[str, ...] = ()
    """Texts of the positive class."""
    negative: tuple[str, ...] = ()
    """Texts of the negative class."""
    unlabelled: tuple[str, ...] = ()
    """Texts of unknown class, for prediction only."""
    exclude: tuple[str, ...] = ()
    """Patterns of files to skip. They match names or the ends of paths."""
    options: ReadingOptions = field(default_factory=ReadingOptions)

    @property
    def addresses(self) -> tuple[str, ...]:
        return (*self.files, *self.test, *self.positive, *self.negative, *self.unlabelled)

    def __post_init__(self) -> None:
        classes, given = bool(self.positive or self.negative), self.options
        require_rules(
            (
                bool(self.files) or bool(self.unlabelled) or classes,
                "no input is given; name files, folders or patterns",
            ),
            (
                bool(self.positive) == bool(self.negative),
                "--positive-input and --negative-input require each other, because training needs two classes",
            ),
            (
                not (classes and self.files),
                "--input reads each text's class from a field, but --positive-input and --negative-input give one "
                "class per file; use one way only",
            ),
            (
                not (classes and any((given.rating, given.label, given.positive_label, given.classes))),
                "--positive-input and --negative-input give the class; leave out the options for ratings and labels",
            ),
        )


@dataclass(frozen=True, kw_only=True)
class InputFile:
    address: str
    """Absolute path or s3://..."""
    size: int
    """Size of the stored file, in bytes."""
    identity: str
    """Value that changes with the content: the modification time in nanoseconds, or the ETag."""
    test: bool = False
    """Whether its texts are in the test set."""
    code: int | None = None
    """Class of all its texts, if the option that named the file gives one."""
    named: bool = True
    """Whether the user gave this address itself, not a folder or a pattern."""

    @property
    def compression(self) -> str | None:
        """Suffix of a compressed file's name, or None for an uncompressed file."""
        return compression(self.address)

    @property
    def plain_size(self) -> int:
        """Approximate size after decompression, in bytes."""
        return plain_size(self.address, self.size)


@dataclass(frozen=True, kw_only=True)
class Source(InputFile):
    format: Format


class Range(NamedTuple):
    """Records of a file that begin in bytes [`start`, `end`); see `ranges.cut_into_tasks`."""

    path: str
    """Path or s3://..."""
    start: int
    """Byte offset, or the index of a row group of Parquet."""
    end: int
    """Byte offset, index of a row group, or WHOLE for a file that is not cut."""
    format: Format
    code: int | None
    """Code of all records if the format names no value field."""
    test: bool
    """Whether the texts are in the test set."""
    size: int | None = None
    """Size of the file in bytes when it was inspected; None disables the check."""


def plain_size(name: str, size: int) -> int:
    """Return the approximate decompressed size of a file, in bytes."""
    return size * EXPANSION.get(compression(name) or "", 1)


def digest_of_files(files: Sequence[InputFile]) -> str:
    """Return a hash of the files' names, sizes and identities. It identifies input that is not a dataset."""
    named = "".join(f"{each.address}\0{each.size}\0{each.identity}\0" for each in files)
    return blake2b(named.encode(), digest_size=16).hexdigest()
