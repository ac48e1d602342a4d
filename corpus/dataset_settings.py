"""Defines the settings of a dataset. Together with the input, they determine the dataset's content."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from common.display import is_printable
from common.errors import DataError, require_rules
from common.json_values import from_json
from corpus.text import FIRST_WORD

if TYPE_CHECKING:
    import numpy as np

WORD_RULES = ("letters", "tokens")
"""Names of rules 1 and 1b of docs/reference/dataset.md, which split a text into words."""
MAX_CLASSES = 1 << 16
RATING_STEPS = (1, 2, 10)
"""Allowed numbers of rating steps per star: 1 for whole stars, 2 for half stars, 10 for tenths."""

_ROW_LENGTH = 100
_ADDED_IN_VERSION_3 = ("ragged", "words", "duplicates", "classes", "negative_labels")
"""Settings that files of layout version 2 do not have."""


class DatasetSize(NamedTuple):
    """Numbers of rows of a dataset, and the mean number of words per row."""

    train: int
    test: int
    words: float


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a dataset.

    New datasets use DEFAULT. Files of layout version 2 lack the settings that version 3 added; a missing setting has
    its value from REFERENCE. Raises DataError for values that are out of range or contradict each other.
    """

    row_length: int = _ROW_LENGTH
    """Maximum number of words in a fixed row.

    Further words are cut off. With ragged rows, this setting must have its default value, and has no effect.
    """
    vocabulary_size: int = 10_000
    """Maximum number of words in the vocabulary. All other words have the id of unknown words."""
    rating_steps: int = 1
    """Steps per star, one of RATING_STEPS. `rating_range`, `positive_from` and the ratings of a dataset are in steps.
    """
    rating_range: tuple[int, int] = (1, 5)
    """Smallest and largest rating, both included."""
    rating_fraction: bool = False
    """Whether a rating in the input can also be a fraction of the largest rating, such as 4/5."""
    positive_from: int = 4
    """Smallest rating of a positive text."""
    labelled: bool = False
    """Whether the input has labels instead of ratings. If so, `rating_range` and `positive_from` have no effect."""
    positive_label: str | None = None
    """Label of the positive class; all other labels are negative. None if the labels are one of the known pairs."""
    negative_labels: tuple[str, ...] = ()
    """Labels in the sample of the input that are not the positive label, as `formats.label_key` returns them.

    Further labels are negative, too, but if many texts have them, the input is refused.
    """
    test_share: float = 0.10
    """Share of the texts that become the test set: at least 0, and below 1."""
    test_input: bool = False
    """Whether the test set is read from its own files. If so, `test_share` has no effect."""
    stopwords: str = "nltk"
    """Stopwords to remove: `nltk`, `keep-negations`, `none`, or the name of a file with one word per line.

    The dataset file stores the words themselves.
    """
    ragged: bool = False
    """Whether rows are whole texts of any length (layout version 3)."""
    words: str = "letters"
    """Rule that splits a text into words, one of WORD_RULES."""
    duplicates: bool = False
    """Whether every text becomes a row. Otherwise, texts with the same words become one row."""
    classes: tuple[str, ...] = ()
    """Names of more than two classes, in the order of their labels; empty if there are two."""

    def __post_init__(self) -> None:
        low, high = self.rating_range
        if self.rating_steps not in RATING_STEPS:  # the messages below state ratings in stars
            raise DataError(f"a star has {self.rating_steps} rating steps, but must have 1, 2 or 10")
        rules = (
            (1 <= self.row_length <= 65_535, f"the row length is {self.row_length}, but must be from 1 to 65535"),
            (
                not self.ragged or self.row_length == _ROW_LENGTH,
                f"the row length is {self.row_length}, but ragged rows are whole texts; leave it out",
            ),
            (
                self.words in WORD_RULES,
                f"the rule of words is {self.words!r}, but must be one of {', '.join(WORD_RULES)}",
            ),
            (self.vocabulary_size >= 1, f"the vocabulary size is {self.vocabulary_size}, but must be at least 1"),
            (
                0 <= low < high <= 255,
                f"the rating range is {self.in_units(low)} to {self.in_units(high)}, but must increase within 0 to "
                f"{self.in_units(255)}",
            ),
            (
                self.labelled or low < self.positive_from <= high,
                f"positive ratings start at {self.in_units(self.positive_from)}, so all ratings from "
                f"{self.in_units(low)} to {self.in_units(high)} are of one class",
            ),
            (0 <= self.test_share < 1, f"the test share is {self.test_share}, but must be at least 0 and below 1"),
            (
                self.labelled or self.positive_label is None,
                "a positive label is given, but the input has ratings; leave it out, or name the field of the labels",
            ),
        )
        require_rules(*rules, *(self._class_rules() if self.classes else ()))

    def _class_rules(self) -> tuple[tuple[bool, str], ...]:
        """Return the rules for classes: for each rule, whether the settings satisfy it, and its error message."""
        count = len(self.classes)
        return (
            (
                self.ragged,
                f"there are {count:,} classes, but only ragged rows may have more than two; choose ragged rows",
            ),
            (
                self.labelled and self.positive_label is None,
                f"for {count:,} classes, the input must have labels, and the positive label must be left out",
            ),
            (
                3 <= count <= MAX_CLASSES,
                f"there are {count:,} class names, but must be 3 to {MAX_CLASSES:,}; for two classes, leave out "
                "--classes, and name the positive label with --positive-label",
            ),
            (
                all(name and is_printable(name) for name in self.classes),
                "a class name is empty or has an unprintable character",
            ),
            (len(set(self.classes)) == count, "two classes have the same name"),
        )

    def in_units(self, rating: int) -> str:
        """Convert a rating from steps to stars, and return it as users write it."""
        return f"{rating / self.rating_steps:g}"

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Self:
        """Return the settings in a parsed JSON object. Raises DataError for an unknown setting or an invalid value."""
        return from_json(cls, written)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as a JSON object.

        The settings that version 3 added are omitted if they have their default values, so that the bytes of files of
        layout version 2 do not change.
        """
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in _ADDED_IN_VERSION_3 or value != getattr(type(self), name)
        }

    @property
    def token_dtype(self) -> "np.dtype[Any]":
        """Type of a word id: 16 bits if they suffice for a full vocabulary, otherwise 32 bits."""
        import numpy as np  # commands import this module for their help

        return np.dtype(np.uint16 if self.vocabulary_size + FIRST_WORD <= 1 << 16 else np.uint32)

    @property
    def padded_length(self) -> int:
        """Maximum number of words per row in a padded batch. For ragged rows, this is the row length of FIXED."""
        return FIXED.row_length if self.ragged else self.row_length

    @property
    def class_count(self) -> int:
        return len(self.classes) or 2

    @property
    def label_dtype(self) -> "np.dtype[Any]":
        """Type of a label: 8 bits for up to 256 classes, otherwise 16 bits."""
        import numpy as np

        return np.dtype(np.uint8 if self.class_count <= 1 << 8 else np.uint16)


DEFAULT = Settings(ragged=True, words="tokens", stopwords="none", vocabulary_size=2_000_000)
"""Default settings of `shoal preprocess`: whole texts with all their words."""
FIXED = Settings(row_length=400, words="tokens", stopwords="none", vocabulary_size=30_000)
"""Settings with fixed rows of 400 words (800 bytes). 82% of film reviews and 96% of product reviews fit."""
REFERENCE = Settings()
"""Settings of the system that Shoal is compared with (`--preset reference`)."""


def in_steps(rating: float, steps: int) -> int:
    """Convert a rating in stars to steps, with `steps` steps per star.

    Raises DataError if the result is not an integer.
    """
    finer = [n for n in RATING_STEPS if isfinite(rating) and n >= steps and not round(rating * n, 6) % 1]
    if steps not in finer:
        further = f"give --rating-step {1 / finer[0]:g}, too" if finer else "ratings are stars, halves or tenths"
        raise DataError(f"{rating:g} is not a valid rating: {further}")
    return round(rating * steps)
