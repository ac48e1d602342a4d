"""What passes between the jobs: records, which are lines of a key, a tab and a value, and beside them files by part.

The easy mistake is to split a record at every tab: a value may hold some.
"""

from collections.abc import Iterable, Iterator

from corpus.reading.storage import PART_PREFIX, join

Record = tuple[bytes, bytes]


def split_record(line: bytes) -> Record:
    """A line of a job's output as key and value; a line without a tab is a key alone."""
    key, _, value = line.rstrip(b"\n").partition(b"\t")
    return key, value


def read_records(lines: Iterable[bytes]) -> Iterator[Record]:
    """The records of a job's output."""
    return map(split_record, lines)


def part_name(number: int) -> str:
    """The name of a part; names are in the order of the parts."""
    return f"{number:04x}"


def part_url(folder: str, part: str) -> str:
    """The address of a part file."""
    return join(folder, f"{PART_PREFIX}{part}.h5")


def side_url(folder: str, part: str) -> str:
    """The address of a side file: what `jobs.deduplicate` leaves of a part for `jobs.encode`."""
    return join(folder, f"{PART_PREFIX}{part}.bin")
