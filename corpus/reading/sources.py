"""Describes the input of a command: the addresses and options that the user gave, the files, and ranges of files.

An option applies to all files. Settings without an option are detected for each file.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from common.errors import require_rules
from corpus.dataset_settings import Settings
from corpus.reading.compression import compression
from corpus.reading.formats import Format, class_name, label_key

EXPANSION = {".gz": 4, ".bz2": 5, ".xz": 5, ".zst": 4}
"""Usual ratio of decompressed size to compressed size, by file suffix."""

POSITIVE, NEGATIVE = 1, 0
"""Codes of the two classes, for files in which all texts are of one class."""
UNLABELLED = 0
"""Code of texts that have no known class."""


FORMAT_CHOICES = ("json", "csv", "tsv", "fasttext", "text", "parquet")
"""Values of --format."""

QUOTING_CHOICES = ("doubled", "none")
"""Values of --quoting.

`doubled`: values can be quoted, with doubled quotes inside. `none`: quotes are ordinary characters.
"""

WHOLE = -1
"""End of a range that covers a whole file."""


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """Options with which the user says how to read the files. Any other setting is detected from the files."""

    kind: str | None = None
    """Format of the files, one of FORMAT_CHOICES."""
    separator: str | None = None
    """Separator of columns."""
    quoting: str | None = None
    """Meaning of quotes, one of QUOTING_CHOICES."""
    text: tuple[str, ...] = ()
    """Names of text fields, or column numbers from 1."""
    rating: str | None = None
    """Name or number of the rating field."""
    label: str | None = None
    """Name or number of the label field. It must not be given together with `rating`."""
    positive_label: str | None = None
    """Label of the positive class. All other labels are then negative."""
    keep: tuple[str, ...] = ()
    """Names or numbers of additional fields that are returned unchanged."""
    classes: tuple[str, ...] = ()
    """Labels of more than two classes, in the order of their codes, with or without fastText's `__label__`."""
    others: bool = False
    """Whether to accept texts with labels that are not in `classes`, such as for a model's predictions."""
    rating_range: tuple[int, int] = (1, 5)
    """Smallest and largest rating, in steps."""
    rating_steps: int = 1
    """Number of steps per star. `rating_steps` and `rating_fraction` are described in corpus.dataset_settings.Settings.
    """
    rating_fraction: bool = False

    def __post_init__(self) -> None:
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
                self.kind not in ("text", "fasttext") or not self.fields,
                f"--format {self.kind} has no fields; leave out the options that name fields",
            ),
        )
        if self.classes:
            same = len(set(map(label_key, self.classes))) < len(self.classes)
            require_rules(
                (not same, f"two of the --classes {', '.join(self.classes)} are the same label; leave one out")
            )
            Settings(ragged=True, labelled=True, classes=self.class_names)  # raises DataError for invalid names

    @property
    def fields(self) -> tuple[str, ...]:
        return (*self.text, *filter(None, (self.rating, self.label)), *self.keep)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, normalised by `formats.class_name`."""
        return tuple(map(class_name, self.classes))


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Input that the user gave: addresses by their purpose, and the options for reading the files.

    An address is a path, an s3:// address, or a pattern. Folders and prefixes stand for all files below them.
    """

    files: tuple[str, ...] = ()
    """Addresses of training texts. If `test` is empty, a share of these texts is the test set."""
    test: tuple[str, ...] = ()
    """Addresses of test texts."""
    positive: tuple[str, ...] = ()
    """Addresses of training texts that are all of the positive class."""
    negative: tuple[str, ...] = ()
    """Addresses of training texts that are all of the negative class."""
    unlabelled: tuple[str, ...] = ()
    """Addresses of texts of unknown class, for prediction only."""
    exclude: tuple[str, ...] = ()
    """Patterns of files to skip. A pattern matches a file name or the end of a path."""
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
    """Absolute path, or an s3:// address."""
    size: int
    """Size of the stored file, in bytes."""
    identity: str
    """Value that changes if the content changes: the modification time in nanoseconds, or the ETag."""
    test: bool = False
    """Whether the texts of the file are in the test set."""
    code: int | None = None
    """Code of the class of all texts in the file, if the option or the folder of the file determines it."""
    named: bool = True
    """Whether the user gave the address of the file itself, not of a folder or a pattern."""

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
    """Range of a file: the records that begin at bytes [`start`, `end`). See `ranges.cut_into_tasks`."""

    path: str
    """Path, or s3:// address."""
    start: int
    """Byte offset, or, for Parquet, the index of the first row group."""
    end: int
    """Byte offset, or, for Parquet, the index after the last row group. WHOLE for a file that is not cut."""
    format: Format
    code: int | None
    """Code of all records if the format has no value field."""
    test: bool
    """Whether the texts of the range are in the test set."""
    size: int | None = None
    """Size of the file in bytes when it was inspected.

    The reader checks that the size is unchanged. Without a size, nothing is checked.
    """


def plain_size(name: str, size: int) -> int:
    """Return the approximate decompressed size of a file, in bytes."""
    return size * EXPANSION.get(compression(name) or "", 1)
