"""The input of a run: what the user named (`Inputs`, `ReadingOptions`), a file of it, and a range of a file.

An option applies to all files. Only what no option gives is detected from the files.
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
"""The usual ratio of decompressed to compressed size, by the ending of the name."""

POSITIVE, NEGATIVE = 1, 0
"""The codes of files of one class."""
UNLABELLED = 0
"""The code of texts whose class is not known; it has no meaning."""


FORMAT_CHOICES = ("json", "csv", "tsv", "fasttext", "text", "parquet")
"""The values of --format."""

QUOTING_CHOICES = ("doubled", "none")
"""The values of --quoting: a quote in a quoted value is doubled, or nothing is quoted."""

WHOLE = -1
"""The end of a range that is a whole file."""


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """The user's options for reading the files; what they leave open is detected from the files."""

    kind: str | None = None
    """One of FORMAT_CHOICES."""
    separator: str | None = None
    """The separator between the columns of a line."""
    quoting: str | None = None
    """One of QUOTING_CHOICES."""
    text: tuple[str, ...] = ()
    """The fields, or numbers of columns from 1, of the text."""
    rating: str | None = None
    """The field of the rating."""
    label: str | None = None
    """The field of the label; at most one of the two is given."""
    positive_label: str | None = None
    """The label of the positive class, all others being negative."""
    keep: tuple[str, ...] = ()
    """Further fields, or numbers of columns, whose values are wanted as they are."""
    classes: tuple[str, ...] = ()
    """The labels of more than two classes, in the order of their numbers; with fastText's `__label__` or without."""
    others: bool = False
    """Whether these classes are those of a model, and labels may be of none of them."""
    rating_range: tuple[int, int] = (1, 5)
    """The smallest and the largest rating, in steps."""
    rating_steps: int = 1
    """See corpus.dataset_settings.Settings, as for the following."""
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
                "--positive-label goes with labels; give --label-field instead of --rating-field",
            ),
            (
                not self.classes or (self.rating is None and self.positive_label is None),
                "--classes names more than two classes of labels; leave out --rating-field and --positive-label",
            ),
            (
                self.separator is None or self.kind in (None, "csv"),
                f"--separator goes with --format csv, or with none, not with {self.kind}",
            ),
            (
                self.quoting is None or self.kind in (None, "csv", "tsv"),
                f"--quoting goes with --format csv or tsv, or with none, not with {self.kind}",
            ),
            (self.separator != "", "--separator is empty; give the text that stands between two columns"),
            (
                self.separator is None or "\n" not in self.separator,
                "--separator holds a newline, which ends a record; give another one",
            ),
            (
                self.kind not in ("text", "fasttext") or not fields,
                f"a line of --format {self.kind} has no fields; leave out the options that name some",
            ),
        )
        if self.classes:
            Settings(ragged=True, labelled=True, classes=self.class_names)  # which checks the names

    @property
    def fields(self) -> tuple[str, ...]:
        return (*self.text, *filter(None, (self.rating, self.label)), *self.keep)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes, as `formats.class_name` has them."""
        return tuple(map(class_name, self.classes))


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The addresses of files, folders or patterns that the user gave, by use, and the options for reading them."""

    files: tuple[str, ...] = ()
    """To train on; without `test` a share of them is the test set."""
    test: tuple[str, ...] = ()
    """The test set."""
    positive: tuple[str, ...] = ()
    """Texts of the positive class."""
    negative: tuple[str, ...] = ()
    """Texts of the negative class."""
    unlabelled: tuple[str, ...] = ()
    """Texts of unknown class, for prediction only."""
    exclude: tuple[str, ...] = ()
    """Patterns of files to leave out of all of these: of names, or of the ends of paths."""
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
                "--positive-input and --negative-input go together; with one class there is nothing to learn",
            ),
            (
                not (classes and self.files),
                "--input has each text's class in a field, --positive-input and --negative-input one class a file; "
                "give one or the other",
            ),
            (
                not (classes and any((given.rating, given.label, given.positive_label, given.classes))),
                "--positive-input and --negative-input give the class; leave out the options for ratings and labels",
            ),
        )


@dataclass(frozen=True, kw_only=True)
class InputFile:
    address: str
    """An absolute path, or s3://..."""
    size: int
    """Bytes of the file as it is stored."""
    identity: str
    """Changes with the content: the modification time in nanoseconds, or the ETag."""
    test: bool = False
    """Whether its texts are in the test set."""
    code: int | None = None
    """The class of all of its texts, where the option that named it gives one."""
    named: bool = True
    """Whether the user gave its own address, not a folder or a pattern."""

    @property
    def compression(self) -> str | None:
        """The ending of the name of a compressed file; None for a plain one."""
        return compression(self.address)

    @property
    def plain_size(self) -> int:
        """About how many bytes it has after decompression."""
        return plain_size(self.address, self.size)


@dataclass(frozen=True, kw_only=True)
class Source(InputFile):
    format: Format


class Range(NamedTuple):
    """The records of a file that begin at or after byte `start` and before byte `end`; see `ranges.cut_into_tasks`."""

    path: str
    """A path or s3://..."""
    start: int
    """A byte; of Parquet a row group."""
    end: int
    """WHOLE for files that are not cut."""
    format: Format
    code: int | None
    """The code of all records, where the format names no field for it."""
    test: bool
    """Whether the texts are of the test set."""
    size: int | None = None
    """The bytes of the file when it was inspected; None for no check."""


def plain_size(name: str, size: int) -> int:
    """About how many bytes a file of this name and size has after decompression."""
    return size * EXPANSION.get(compression(name) or "", 1)


def digest_of_files(files: Sequence[InputFile]) -> str:
    """What stands for input that is not a dataset: it follows from the files' names, sizes and times."""
    named = "".join(f"{each.address}\0{each.size}\0{each.identity}\0" for each in files)
    return blake2b(named.encode(), digest_size=16).hexdigest()
