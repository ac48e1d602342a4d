"""Defines the JSON documents with which one machine asks another machine to make a dataset, and receives its progress.

Other programs can write such documents too, so all values are checked when a document is read.
"""

from dataclasses import dataclass
from typing import Annotated, Self

from common.checked_values import of_length, within
from common.display import plural
from common.json_values import from_json, parse_json_object
from corpus.dataset_settings import Settings
from corpus.reading.sources import Source

_MAX_SOURCES, _MAX_BYTES = 1 << 20, (1 << 60) - 1


@dataclass(frozen=True, kw_only=True)
class RawTexts:
    """Raw texts for a training dataset, with the result of their inspection."""

    sources: Annotated[tuple[Source, ...], of_length(1, _MAX_SOURCES)]
    settings: Settings
    """Settings with the values that depend on the input."""
    max_malformed: Annotated[float, within(0, 1)]
    """Maximum share of malformed lines."""
    plain_bytes: Annotated[int, within(0, _MAX_BYTES)]
    """Approximate decompressed size of all texts, in bytes."""


@dataclass(frozen=True, kw_only=True)
class TextProgress:
    """Progress of reading raw texts."""

    read: int
    """Number of decompressed bytes that were read."""
    lines: int = 0
    """Number of lines. This field, `malformed` and `empty` (texts without words) are 0 until all texts are read."""
    malformed: int = 0
    empty: int = 0

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Parse progress from JSON. Raises DataError for any other text."""
        return from_json(cls, parse_json_object(text))


def describe_skipped_lines(*, lines: int, malformed: int, empty: int) -> list[str]:
    """Return a sentence about malformed lines and one about texts without words, if there are any."""
    found = ((malformed, "are malformed"), (empty, "have no words"))
    return [f"{number:,} of {plural(lines, 'line')} {what} and were skipped" for number, what in found if number]
