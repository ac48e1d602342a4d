"""The records between the jobs (lines of a key, a tab and a value), and the names of the files of each part.

Split a record at its first tab only, because a value may hold tabs.
"""

from collections.abc import Iterable, Iterator

from corpus.reading.storage import PART_PREFIX, join

Record = tuple[bytes, bytes]


def split_record(line: bytes) -> Record:
    """A line of a job's output as key and value; a line without a tab is a key alone."""
    key, _, value = line.rstrip(b"\n").partition(b"\t")
    return key, value


def read_records(lines: Iterable[bytes]) -> Iterator[Record]:
    return map(split_record, lines)


def part_name(number: int) -> str:
    """The name of a part; names are in the order of the parts."""
    return f"{number:04x}"


def part_url(folder: str, part: str) -> str:
    return join(folder, f"{PART_PREFIX}{part}.h5")


def side_url(folder: str, part: str) -> str:
    """The address of a side file, which `jobs.deduplicate` writes for a part and `jobs.encode` reads."""
    return join(folder, f"{PART_PREFIX}{part}.bin")
