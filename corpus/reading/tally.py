"""Counts the lines and malformed lines of a task.

The sum over all tasks does not depend on how the input is cut into ranges. Jobs exchange a tally as records. Do not use
the runner's counters, because they count a retried task twice. A task does not know how many lines precede a range, so
it stores the number of a malformed line relative to the range. It also stores the number of lines of each range, from
which `malformed_lines` computes the line numbers in the file.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from common.display import plural, printable
from corpus.reading.formats import MALFORMED_REASONS

# These keys differ from all keys of word counts, because a word never contains a colon.
COUNTS_KEY = b":counts"
PLACES_KEY = b":places"
LINES_KEY = b":lines"
DAMAGE_KEY = b":damage"
KEYS = (COUNTS_KEY, PLACES_KEY, LINES_KEY, DAMAGE_KEY)

PLACES_KEPT = 3
MAX_LABELS = 1_000
"""Maximum number of different labels that are counted one by one."""
MANY_LABELS = f"\u2026 more than {MAX_LABELS:,} labels"
"""Name for all labels together if there are more. NFKC replaces this letter, so no label has this name."""
EXCERPT_CHARACTERS = 80
# A character has at most four bytes in UTF-8.
EXCERPT_BYTES = 4 * EXCERPT_CHARACTERS

_LABELS = "other_labels."
_LABELS_SHOWN, _LABEL_LETTERS = 8, 40

_Found = tuple[str, int, int, str]


@dataclass(frozen=True, kw_only=True)
class MalformedLine:
    """Malformed line: the reason, the address of its file, its line number from 1, and its first 80 characters.

    For Parquet and JSON arrays, the line number is the number of the row or element. For csv, it is the number of the
    record's first line.
    """

    reason: str
    file: str
    line: int
    begins: str

    @property
    def may_be_cut(self) -> bool:
        """Whether the line might be a part of a record with a quoted newline."""
        return self.reason in ("too_few_columns", "bad_rating", "bad_label") and self.begins.count('"') % 2 > 0


class Tally:
    """Counts of lines, excerpts of malformed lines, the number of lines of each range, and the damaged files."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        """Counts with flat names, such as `malformed_by_reason.not_json`."""
        self._found: dict[str, list[_Found]] = {}
        self._lines: dict[str, dict[int, int]] = {}
        self._damaged: set[str] = set()
        self._labels = 0

    def count_malformed(
        self, reason: str, address: str, start: int, line: int, excerpt: bytes, number: int = 1
    ) -> None:
        """Count a malformed line, or a `number` of lines.

        `line` is the number of the line, from 1, in the range of `address` that begins at byte `start`. `excerpt` is
        the beginning of the line.
        """
        for name in ("lines", "malformed", f"malformed_by_reason.{reason}"):
            self.counts[name] += number
        found = self._found.setdefault(reason, [])
        if len(found) < PLACES_KEPT or (address, start, line) < found[-1]:
            self._keep(reason, [(address, start, line, excerpt_of(excerpt))])

    def add_labels(self, labels: Mapping[str, int]) -> None:
        """Count the labels that `LabelEncoder.other_labels` has. Further labels after MAX_LABELS share one count."""
        for label, number in labels.items():
            name = f"{_LABELS}{label[:EXCERPT_CHARACTERS]}"
            if name not in self.counts:
                name = name if self._labels <= MAX_LABELS else _LABELS + MANY_LABELS
                self._labels += 1
            self.counts[name] += number

    def add_range(self, address: str, start: int, lines: int, *, damaged: bool = False) -> None:
        """Record the number of lines, including blank lines, of the range of `address` that begins at byte `start`.

        Set `damaged` to true if the file is damaged, so that only the lines before the damage were counted.
        """
        self._lines.setdefault(address, {})[start] = lines
        if damaged:
            self._damaged.add(address)

    def records(self) -> list[tuple[bytes, bytes]]:
        """Return the tally as records of a key and a value, in ASCII without tabs and newlines."""
        parts = (
            (COUNTS_KEY, +self.counts),
            (PLACES_KEY, self._found),
            (LINES_KEY, {address: sorted(ranges.items()) for address, ranges in self._lines.items()}),
            (DAMAGE_KEY, sorted(self._damaged)),
        )
        return [(key, json.dumps(value, sort_keys=True).encode("ascii")) for key, value in parts if value]

    def add_records(self, key: bytes, values: Iterable[bytes]) -> None:
        for value in values:
            content = json.loads(value)
            if key == COUNTS_KEY:
                self.counts.update(content)
            elif key == PLACES_KEY:
                for reason, found in content.items():
                    self._keep(reason, [(address, start, line, begins) for address, start, line, begins in found])
            elif key == DAMAGE_KEY:
                self._damaged.update(content)
            else:
                for address, ranges in content.items():
                    self._lines.setdefault(address, {}).update(ranges)

    @classmethod
    def sum_records(cls, key: bytes, values: Iterable[bytes]) -> list[tuple[bytes, bytes]]:
        """Return one record for the values of a key of `records`."""
        tally = cls()
        tally.add_records(key, values)
        return tally.records()

    @property
    def malformed_by_reason(self) -> dict[str, int]:
        """Number of malformed lines for each reason, without reasons that do not occur."""
        start = "malformed_by_reason."
        return {name.removeprefix(start): n for name, n in self.counts.items() if name.startswith(start) and n}

    def malformed_lines(self) -> list[MalformedLine]:
        """Return the first malformed lines, at most three for each reason, sorted by reason, file and line."""
        return [
            MalformedLine(reason=reason, file=address, line=self._lines_before(address, start) + line, begins=begins)
            for reason in sorted(self._found, key=MALFORMED_REASONS.index)
            for address, start, line, begins in self._found[reason]
        ]

    def damage_reports(self) -> list[str]:
        """Return a clause for each damaged file, which states the number of lines before the damage."""
        read = {address: sum(self._lines[address].values()) for address in sorted(self._damaged)}
        return [f"{address} is damaged after {plural(lines, 'line')}" for address, lines in read.items()]

    def _keep(self, reason: str, found: list[_Found]) -> None:
        self._found[reason] = sorted({*self._found.get(reason, ()), *found})[:PLACES_KEPT]

    def _lines_before(self, address: str, start: int) -> int:
        return sum(lines for at, lines in self._lines.get(address, {}).items() if at < start)


def other_labels(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the labels in `Tally.counts` with their counts, the most frequent first.

    If there are more than MAX_LABELS labels, the result has only their sum, as the count of MANY_LABELS.
    """
    found = {name.removeprefix(_LABELS): number for name, number in counts.items() if name.startswith(_LABELS)}
    # Which labels are counted one by one depends on how the input was cut into ranges. The sum does not.
    found = found if len(found) <= MAX_LABELS else {MANY_LABELS: sum(found.values())}
    return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))


def list_values(values: Counter[str]) -> str:
    """Return a list of the most frequent labels or ratings with their counts, for a message."""
    listed = ", ".join(f"{value[:_LABEL_LETTERS]!r} ({count})" for value, count in values.most_common(_LABELS_SHOWN))
    return listed + (", ..." if len(values) > _LABELS_SHOWN else "")


def is_tally_key(key: bytes) -> bool:
    return key in KEYS


def excerpt_of(line: bytes) -> str:
    """Return the first characters of a line, with unprintable characters replaced."""
    return printable(line[:EXCERPT_BYTES].decode("utf-8", "replace")[:EXCERPT_CHARACTERS])
