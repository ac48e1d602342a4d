"""Hadoop's text input: finds the input files, computes splits, and reads the lines of a split.

The rules are those of `FileInputFormat`, `TextInputFormat` and `LineRecordReader` in Hadoop's older API
(`org.apache.hadoop.mapred`), which Streaming uses. In that API `mapreduce.input.fileinputformat.split.maxsize` has no
effect. To get smaller splits, set a larger `mapreduce.job.maps`.
"""

import bz2
import fnmatch
import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shoal_local_aws.emulator_error import EmulatorError
from shoal_local_aws.hadoop.job_options import whole_number
from shoal_local_aws.hadoop.paths import Entry, Files

_BLOCK = 32 * 1024 * 1024  # fs.s3a.block.size
_SLOP = 1.1  # largest length of the last split, relative to the other splits
_CHUNK = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_COMPRESSED = (".gz", ".bz2")


@dataclass(frozen=True, kw_only=True)
class FileSplit:
    """A byte range of a file. A line belongs to the split if it begins after `start` (or at 0) and not after the
    end."""

    path: str
    start: int
    length: int


def input_files(files: Files, path: str) -> list[Entry]:
    """Return the files of an input path, which is a file, a folder or a glob pattern. Hidden files are left out.

    Raises EmulatorError if no file exists or if the folder contains a folder.
    """
    pattern = any(character in path for character in "*?[")
    if pattern:
        parent, _, name = path.rpartition("/")
        matches = [entry for entry in files.children(parent) if fnmatch.fnmatchcase(entry.name, name)]
        if not matches:
            raise EmulatorError(f"Input Pattern {path} matches 0 files")
    elif (entry := files.find(path)) is None:
        raise EmulatorError(f"Input path does not exist: {path}")
    else:
        matches = [entry]
    found = []
    for match in matches:
        inside = files.children(match.path) if match.folder else [match]
        found += [entry for entry in inside if not entry.name.startswith(("_", "."))]
    for entry in found:
        if entry.folder:
            raise EmulatorError(f"Not a file: {entry.path}")
    return found


def compute_splits(entries: list[Entry], properties: Mapping[str, str]) -> list[FileSplit]:
    """Return the splits of the files, each at most one block long. `mapreduce.job.maps` is the intended number of
    splits."""
    goal = sum(entry.size for entry in entries) // max(1, whole_number(properties, "mapreduce.job.maps", 2))
    least = whole_number(properties, "mapreduce.input.fileinputformat.split.minsize", 1)
    size = max(least, min(goal, _BLOCK), 1)
    cut = []
    for entry in entries:
        start = 0
        if not entry.name.endswith(_COMPRESSED):
            while (entry.size - start) / size > _SLOP:
                cut.append(FileSplit(path=entry.path, start=start, length=size))
                start += size
        if start < entry.size or entry.size == 0:
            cut.append(FileSplit(path=entry.path, start=start, length=entry.size - start))
    return cut


def read_lines(files: Files, split: FileSplit, *, only_newline: bool) -> Iterator[bytes]:
    """Yield the lines of a split in blocks of bytes. If the last line of the file has no newline, it gets one.

    A line ends at a newline. Unless `only_newline` is true, a line also ends at a carriage return, which becomes a
    newline.
    """
    blocks = _without_mark(_blocks(files, split)) if split.start == 0 else _blocks(files, split)
    last = b"\n"
    for block in blocks if only_newline else _without_returns(blocks):
        yield block
        last = block[-1:]
    if last != b"\n":
        yield b"\n"


def _blocks(files: Files, split: FileSplit) -> Iterator[bytes]:
    if split.path.endswith(_COMPRESSED):
        opener: Any = gzip.open if split.path.endswith(".gz") else bz2.open
        with files.open(split.path) as raw, opener(raw) as stream:
            while block := stream.read(_CHUNK):
                yield block
        return
    end = split.start + split.length
    with files.open(split.path, split.start) as stream:
        position = split.start + (len(stream.readline()) if split.start else 0)
        if position > end:
            return
        while position < end and (block := stream.read(min(_CHUNK, end - position))):
            yield block
            position += len(block)
        if rest := stream.readline():
            yield rest


def _without_mark(blocks: Iterator[bytes]) -> Iterator[bytes]:
    first = next(blocks, b"").removeprefix(_BYTE_ORDER_MARK)
    if first:
        yield first
    yield from blocks


def _without_returns(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the blocks. Replace each carriage return, with or without a following newline, by one newline."""
    held = b""
    for block in blocks:
        whole = held + block
        held = b"\r" if whole.endswith(b"\r") else b""
        whole = whole.removesuffix(b"\r")
        if b"\r" in whole:
            whole = whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if whole:
            yield whole
    if held:
        yield b"\n"
