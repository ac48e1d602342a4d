"""Cuts files into ranges, assigns ranges to tasks, and reads a range.

The input of a mapper is a list of ranges, and the mapper reads the files itself. The input formats of Hadoop, Spark and
mrjob are not used, because they treat byte-order marks, compressed files, long lines and damage differently. Compressed
files and CSV files are not cut, because reading a range in the middle requires the bytes before it.
"""

import heapq
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise
from math import ceil

from common.errors import DataError
from common.json_values import from_json
from corpus.reading.batches import TextBatch, line_batches, range_content
from corpus.reading.compression import DamagedArchiveError, compression
from corpus.reading.csv_records import record_batches
from corpus.reading.formats import BLANK, Format, LabelEncoder
from corpus.reading.lines import LongLine, count_record
from corpus.reading.parquet import group_sizes, row_batches
from corpus.reading.sources import WHOLE, Range, Source
from corpus.reading.storage import size_of
from corpus.reading.tally import Tally

_MIN_RANGE_BYTES = 1 << 20
_MAX_RANGE_BYTES = 64 << 20
_MAX_TASK_BYTES = 1 << 30


def cut_into_tasks(files: Sequence[Source], tasks: int) -> list[list[Range]]:
    """Return the ranges of all files, assigned to tasks of similar size.

    The same files always result in the same tasks. The number of tasks is `tasks`, but larger if a task would otherwise
    exceed 1 GiB, and smaller if the input is small. A range has 1 to 64 MiB, except for a file in a format that does
    not allow cuts.
    """
    total = sum(file.plain_size for file in files)
    tasks = max(tasks, ceil(total / _MAX_TASK_BYTES))
    # If the input is one large file, all ranges are equal in size, and every task has the same number of ranges.
    rounds = max(1, ceil(total / tasks / _MAX_RANGE_BYTES))
    size = max(_MIN_RANGE_BYTES, ceil(total / tasks / rounds))
    weighed = [each for file in files if file.size for each in _ranges_of(file, size)]
    loads = [(0, task) for task in range(tasks)]
    chosen: list[list[int]] = [[] for _ in loads]
    for number in sorted(range(len(weighed)), key=lambda number: (-weighed[number][0], number)):
        load, task = heapq.heappop(loads)
        chosen[task].append(number)
        heapq.heappush(loads, (load + weighed[number][0], task))
    return [[weighed[number][1] for number in sorted(numbers)] for numbers in chosen if numbers]


def _ranges_of(file: Source, size: int) -> list[tuple[int, Range]]:
    def ranges(edges: Sequence[int]) -> list[Range]:
        return [Range(file.address, *pair, file.format, file.code, file.test, file.size) for pair in pairwise(edges)]

    if file.format.kind == "parquet":
        groups = group_sizes(file.address)
        if groups is not None:
            weights, edges = _merge_row_groups(groups, size)
            return list(zip(weights, ranges(edges), strict=True))
    if not file.format.is_splittable or compression(file.address):
        return [(file.plain_size, ranges([0, WHOLE])[0])]
    pieces = max(1, min(ceil(file.size / size), file.size // _MIN_RANGE_BYTES))
    edges = [file.size * piece // pieces for piece in range(pieces + 1)]
    return [(part.end - part.start, part) for part in ranges(edges)]


def _merge_row_groups(groups: Sequence[int], size: int) -> tuple[list[int], list[int]]:
    """Join neighbouring row groups up to `size` bytes.

    Returns the size of each joined group in bytes, and the indices of row groups at which the joined groups begin and
    end.
    """
    weights: list[int] = []
    edges = [0]
    for number, group in enumerate(groups, 1):
        if weights and weights[-1] + group <= size:
            weights[-1] += group
            edges[-1] = number
        else:
            weights.append(group)
            edges.append(number)
    return weights, edges


def task_line(ranges: Sequence[Range]) -> bytes:
    """Encode a task as an ASCII line of a job's input, without a newline."""
    formats = list(dict.fromkeys(part.format for part in ranges))
    places = [(*part[:3], formats.index(part.format), *part[4:]) for part in ranges]
    return json.dumps({"formats": [asdict(form) for form in formats], "ranges": places}).encode("ascii")


def read_task(line: bytes) -> list[Range]:
    """Return the ranges of a task that `task_line` encoded."""
    task = json.loads(line)
    formats = [from_json(Format, form) for form in task["formats"]]
    return [
        Range(path, start, end, formats[form], code, test, size)
        for path, start, end, form, code, test, size in task["ranges"]
    ]


def read_batches(
    part: Range, encoder: LabelEncoder, tally: Tally, stream: Iterator[bytes] | None = None
) -> Iterator[TextBatch]:
    """Yield the reviews of a range, in order, in nonempty batches of at most 256 texts and about 256 KiB.

    With `stream`, the content is these bytes, without a byte-order mark, and no file is read; the format must not be
    Parquet. Counts lines and malformed lines in `tally`. If the file is damaged, yields the reviews of all complete
    lines before the damage, and records the damage in `tally`. Raises DataError if the file is unreadable or was
    changed.
    """

    def malformed(reason: str, line: int, content: bytes | LongLine) -> None:
        if reason != BLANK:
            count_record(tally, part.format.kind, reason, part.path, part.start, line, content)

    if part.format.kind == "parquet":
        batches = row_batches(part, encoder, malformed)
    else:
        read = record_batches if part.format.kind == "csv" else line_batches
        batches = read(part, range_content(part) if stream is None else stream, encoder, malformed)
    lines = 0
    damaged = False
    try:
        for batch, lines in batches:  # noqa: B007
            tally.counts["lines"] += len(batch.texts)
            tally.add_labels(encoder.other_labels)
            encoder.other_labels.clear()
            if batch.texts:
                yield batch
    except DamagedArchiveError:
        damaged = True
    except OSError as error:
        raise DataError(f"cannot read {part.path}: {error.strerror or error}; check the disk or network") from error
    if part.size is not None and size_of(part.path) != part.size:
        raise DataError(
            f"{part.path} changed while Shoal read it; run the same command again when the file is complete"
        )
    tally.add_range(part.path, part.start, lines, damaged=damaged)
