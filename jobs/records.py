"""The records that pass between the jobs: ASCII lines of a key, a tab, and a value.

The easy mistake is to count by the runner's counters: a retried task doubles those. Counts here are records
like any other, under a key that no word and no digest can be, and each job passes on those it receives.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import orjson

COUNTS_KEY = b"#counts"

Record = tuple[bytes, bytes]


class DistinctText(NamedTuple):
    """A text that occurs once: its digest in hexadecimal, modal rating, and cleaned words joined by spaces."""

    digest: str
    rating: int
    cleaned: str

    def record(self) -> Record:
        """The text as the value of its digest."""
        return self.digest.encode(), b"%d\t%s" % (self.rating, self.cleaned.encode())


def read_distinct_text(key: bytes, value: bytes) -> DistinctText:
    """The inverse of `DistinctText.record`."""
    rating, _, cleaned = value.partition(b"\t")
    return DistinctText(key.decode(), int(rating), cleaned.decode())


def counts_record(counts: Counter[str]) -> Record:
    """Counts as a record; names are flat, such as `malformed_by_reason.not_json`."""
    return COUNTS_KEY, orjson.dumps(counts, option=orjson.OPT_SORT_KEYS)


def sum_counts(values: Iterable[bytes]) -> Counter[str]:
    """The sum of the values of count records."""
    total: Counter[str] = Counter()
    for value in values:
        total.update(orjson.loads(value))
    return total


def split_record(line: bytes) -> Record:
    """A line of a job's output as key and value; a line without a tab is a key alone."""
    key, _, value = line.rstrip(b"\n").partition(b"\t")
    return key, value


def read_records(lines: Iterable[bytes]) -> Iterator[Record]:
    """The records of a job's output."""
    return map(split_record, lines)
