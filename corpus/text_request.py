"""Texts that another machine is to encode, as its request has them, and what it reports about them.

Others may write such documents, so their values are checked when they are read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from common.display import plural
from common.json_values import long, made, parse_json_object, within
from corpus.dataset_settings import Settings
from corpus.reading.sources import Source

_MOST_SOURCES, _MOST_BYTES = 1 << 20, (1 << 60) - 1


@dataclass(frozen=True, kw_only=True)
class TextRequest:
    """Texts to encode, as their files were understood."""

    sources: Annotated[tuple[Source, ...], long(1, _MOST_SOURCES)]
    settings: Settings
    """With the values that depend on the input."""
    max_malformed: Annotated[float, within(0, 1)]
    """The largest share of malformed lines."""
    plain_bytes: Annotated[int, within(0, _MOST_BYTES)]
    """About how many bytes all texts are, decompressed."""

    def encode(self, output: Path, report: Callable[[int], None], *, place: str) -> dict[str, Any]:
        """Write the dataset of these texts; see `corpus.raw_texts.encode_texts`."""
        from corpus.raw_texts import encode_texts  # numba takes long to load

        return encode_texts(
            self.sources,
            self.settings,
            output,
            max_malformed=self.max_malformed,
            report=report,
            place=place,
        )


@dataclass(frozen=True, kw_only=True)
class TextProgress:
    """What the program has done of a request."""

    read: int
    """The bytes of texts that were read, decompressed."""
    lines: int = 0
    """When all is read: the lines, how many of them are malformed, and how many have a text without words."""
    malformed: int = 0
    empty: int = 0

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The inverse of JSON. Raises DataError for anything else."""
        return made(cls, parse_json_object(text))


def describe_left_out(*, lines: int, malformed: int, empty: int) -> list[str]:
    """Sentences about lines that are not in the dataset."""
    found = ((malformed, "are malformed"), (empty, "have no words"))
    return [f"{number:,} of {plural(lines, 'line')} {what}, and are left out" for number, what in found if number]
