"""What is read: what a person named and asked for (`Inputs`), a file that is meant by it, and a range of one.

The easy mistake is to find out again what a person has said: an option holds for all files, and only what none says is
found out from them.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from corpus.errors import DataError
from corpus.reading.compression import compression
from corpus.reading.formats import Format

EXPANSION = {".gz": 4, ".bz2": 5, ".xz": 5, ".zst": 4}
"""About how much larger what a packed file holds is, by the ending of its name."""

POSITIVE, NEGATIVE = 1, 0
"""The codes of files of one class."""
UNLABELLED = 0
"""The code of texts of which nobody says the class: it says nothing."""


FORMAT_CHOICES = ("json", "csv", "tsv", "fasttext", "text", "parquet")
"""The kinds of files that can be asked for."""

WHOLE = -1
"""The end of a range that is a whole file."""


def _check(*rules: tuple[bool, str]) -> None:
    for holds, sentence in rules:
        if not holds:
            raise DataError(sentence)


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """What a person said about how the files are to be read; what is not said is found out from the files."""

    kind: str | None = None
    """One of KINDS."""
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
    options: ReadingOptions = field(default_factory=ReadingOptions)

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
                not (classes and (self.options.rating or self.options.label or self.options.positive_label)),
                "the files of --positive-input and --negative-input say the class; leave out the options for ratings "
                "and labels",
            ),
        )


@dataclass(frozen=True, kw_only=True)
class InputFile:
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
class Source(InputFile):
    """A file and how it is to be read."""

    format: Format


class Range(NamedTuple):
    """The records of a file that begin at or after byte `start` and before byte `end`; see `ranges.cut`."""

    path: str
    """A path or s3://..."""
    start: int
    """A byte; of Parquet a row group."""
    end: int
    """WHOLE for files that are not cut."""
    format: Format
    code: int | None
    """What all records say, where the format names no field of it."""
    test: bool
    """Whether the texts are of the test set."""
    size: int | None = None
    """The bytes of the file when it was looked at; None where it does not matter."""


def plain_size(name: str, size: int) -> int:
    """About how many bytes a file of this name and size holds when it is unpacked."""
    return size * EXPANSION.get(compression(name) or "", 1)
