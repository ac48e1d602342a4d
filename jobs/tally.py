"""What a task counts, and where the first malformed lines are: the same sum for every split and order of tasks.

Counts travel as records of the jobs' output, never as the runner's counters, which a retried task doubles. The
easy mistake is to number lines where they are read: a range in the middle of a file does not know how many came
before. So places are relative to their range, ranges say how many lines they hold, and `places` adds up.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from corpus.formats import MALFORMED_REASONS
from jobs.shown import printable

COUNTS_KEY = b"#counts"
PLACES_KEY = b"#places"
LINES_KEY = b"#lines"
KEYS = (COUNTS_KEY, PLACES_KEY, LINES_KEY)

PLACES_KEPT = 3
EXCERPT_CHARACTERS = 80
# A character has at most four bytes in UTF-8.
EXCERPT_BYTES = 4 * EXCERPT_CHARACTERS

_Found = tuple[str, int, int, str]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a malformed line is: the reason, the file's address, the line from 1, its first 80 characters.

    In Parquet the line is the row; of csv it is a record's first.
    """

    reason: str
    file: str
    line: int
    begins: str


class Tally:
    """Counts, the first malformed lines of each reason, and the number of lines in each range that was read."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        """By flat names, such as `malformed_by_reason.not_json`."""
        self._found: dict[str, list[_Found]] = {}
        self._lines: dict[str, dict[int, int]] = {}

    def malformed(self, reason: str, address: str, start: int, line: int, excerpt: bytes) -> None:
        """Count a malformed line: the `line`-th, from 1, of the range of `address` at `start`; it begins as `excerpt`.

        It counts among `lines`, too.
        """
        self.counts["lines"] += 1
        self.counts["malformed"] += 1
        self.counts[f"malformed_by_reason.{reason}"] += 1
        found = self._found.setdefault(reason, [])
        if len(found) < PLACES_KEPT or (address, start, line) < found[-1]:
            self._keep(reason, [(address, start, line, excerpt_of(excerpt))])

    def newlines(self, address: str, start: int, lines: int) -> None:
        """Say how many lines, blank ones too, begin in the range of `address` at `start`."""
        self._lines.setdefault(address, {})[start] = lines

    def records(self) -> list[tuple[bytes, bytes]]:
        """All of it as records: ASCII, without tabs and newlines."""
        parts = (
            (COUNTS_KEY, +self.counts),
            (PLACES_KEY, self._found),
            (LINES_KEY, {address: sorted(ranges.items()) for address, ranges in self._lines.items()}),
        )
        return [(key, json.dumps(value, sort_keys=True).encode("ascii")) for key, value in parts if value]

    def absorb(self, key: bytes, values: Iterable[bytes]) -> None:
        """Add what other tallies said in records of one key."""
        for value in values:
            said = json.loads(value)
            if key == COUNTS_KEY:
                self.counts.update(said)
            elif key == PLACES_KEY:
                for reason, found in said.items():
                    self._keep(reason, [(address, start, line, begins) for address, start, line, begins in found])
            else:
                for address, ranges in said.items():
                    self._lines.setdefault(address, {}).update(ranges)

    def places(self) -> list[Place]:
        """The first malformed lines: three of each reason at most, in the order of reasons, files and lines."""
        return [
            Place(reason=reason, file=address, line=self._lines_before(address, start) + line, begins=begins)
            for reason in sorted(self._found, key=_rank)
            for address, start, line, begins in self._found[reason]
        ]

    def _keep(self, reason: str, found: list[_Found]) -> None:
        self._found[reason] = sorted({*self._found.get(reason, ()), *found})[:PLACES_KEPT]

    def _lines_before(self, address: str, start: int) -> int:
        return sum(lines for at, lines in self._lines.get(address, {}).items() if at < start)


def is_tally(key: bytes) -> bool:
    """Whether records of this key are a tally's."""
    return key in KEYS


def excerpt_of(line: bytes) -> str:
    """The first characters of a line, as far as they can be read and printed."""
    return printable(line[:EXCERPT_BYTES].decode("utf-8", "replace")[:EXCERPT_CHARACTERS])


def _rank(reason: str) -> int:
    return MALFORMED_REASONS.index(reason)
