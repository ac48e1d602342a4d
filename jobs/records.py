"""The records that pass between the jobs: lines of a key, a tab, and a value.

The easy mistake is to split at every tab: a value may hold some.
"""

from collections.abc import Iterable, Iterator

Record = tuple[bytes, bytes]


def split_record(line: bytes) -> Record:
    """A line of a job's output as key and value; a line without a tab is a key alone."""
    key, _, value = line.rstrip(b"\n").partition(b"\t")
    return key, value


def read_records(lines: Iterable[bytes]) -> Iterator[Record]:
    """The records of a job's output."""
    return map(split_record, lines)
