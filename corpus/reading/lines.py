r"""Splits a range of a file into lines, in bounded memory.

A line ends only at `\n`. It belongs to the range in which it begins. Do not remove the limit on the length of a line,
because a file without newlines would fill the memory.
"""

from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

from common.errors import DataError
from corpus.reading.compression import BLOCK_BYTES
from corpus.reading.formats import BYTE_ORDER_MARK, CARRIAGE_RETURN, MAX_LINE_BYTES
from corpus.reading.tally import EXCERPT_BYTES, Tally

CONVERT_RETURNS = "convert it: tr -s '\\r' '\\n' < OLD > NEW"
_MAX_JOINED_SHARE = 0.05
_REASONS_OF_JOINED = {
    "json": ("too_long", "not_json"),
    "csv": ("too_long", "not_csv", "too_many_columns"),
    "separated": ("too_long", "too_many_columns", CARRIAGE_RETURN),
    "fasttext": ("too_long", "bad_label"),
    "text": ("too_long", CARRIAGE_RETURN),
}
"""Reasons that apply to lines that carriage returns join, by kind of format."""


class LongLine(NamedTuple):
    """Beginning of a line of more than MAX_LINE_BYTES."""

    begins: bytes
    size: int
    """Length of the whole line in bytes, without the newline."""
    returns: int = 0
    """Number of carriage returns in the whole line."""


def range_blocks(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of all lines that begin in [`start`, `end`), in blocks.

    The position of `file` must be `start - 1`, or 0 if `start` is 0.
    """
    position = max(start - 1, 0)
    # The bytes before the first newline belong to the previous range.
    is_before = start > 0
    while block := file.read(BLOCK_BYTES):
        position += len(block)
        if is_before:
            _, newline, block = block.partition(b"\n")
            if position - len(block) >= end:
                return
            if not newline:
                continue
            is_before = False
        if position >= end:
            last = block.find(b"\n", max(len(block) - (position - end) - 1, 0))
            if last >= 0:
                yield block[: last + 1]
                return
        yield block


def without_byte_order_marks(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield blocks without byte-order marks at the starts of lines. The first block begins a line.

    Files that were joined by `cat` have such a mark in the middle.
    """
    marked = b"\n" + BYTE_ORDER_MARK
    before, held = b"\n", b""
    for block in blocks:
        if block and not held and BYTE_ORDER_MARK[0] not in block:
            yield block
            before = block[-1:] if block.endswith(b"\n") else b""
            continue
        whole = before + held + block
        while marked in whole:
            whole = whole.replace(marked, b"\n")
        # Hold back only a part of a mark, so that a typed line is read at once.
        held = next((marked[1:size] for size in (3, 2) if whole.endswith(marked[:size])), b"")
        ready = whole[: len(whole) - len(held)]
        if ready[len(before) :]:
            yield ready[len(before) :]
        before = ready[-1:] if ready.endswith(b"\n") else b""
    if held:
        yield held


def _long(line: bytes) -> LongLine:
    return LongLine(line[:EXCERPT_BYTES], len(line), line.count(b"\r"))


def count_record(
    tally: Tally, kind: str, reason: str, address: str, start: int, number: int, line: bytes | LongLine
) -> None:
    """Count a malformed record of the format `kind` with the first line `line`.

    If carriage returns may have joined lines, each one after the first counts as one more malformed line. Otherwise
    many lines would count as one.
    """
    begins, returns = (line.begins, line.returns) if isinstance(line, LongLine) else (line, line.count(b"\r"))
    tally.count_malformed(reason, address, start, number, begins)
    if returns > 1 and reason in _REASONS_OF_JOINED.get(kind, ()):
        tally.count_malformed(CARRIAGE_RETURN, address, start, number, begins, returns - 1)


def check_line_ends(tally: Tally) -> None:
    """Raise DataError if carriage returns joined more than 5% of the lines."""
    joined = tally.malformed_by_reason.get(CARRIAGE_RETURN, 0)
    if joined > _MAX_JOINED_SHARE * tally.counts["lines"]:
        place = next((each for each in tally.malformed_lines() if each.reason == CARRIAGE_RETURN), None)
        where = f"line {place.line} of {place.file}" if place else "a line of the input"
        raise DataError(f"{where} contains several lines that end with carriage returns; {CONVERT_RETURNS}")


def split_lines(blocks: Iterator[bytes]) -> Iterator[list[bytes] | LongLine]:
    """Split blocks of bytes into lines, and yield them in lists, without newlines.

    A line that is too long is yielded alone, as a LongLine. Blocks must be shorter than MAX_LINE_BYTES. If `blocks`
    raises an exception, all complete lines before it are yielded first. The character that ends texts of DOS (Ctrl-Z)
    is left out at the end.
    """
    carry = b""
    long: LongLine | None = None
    for block in blocks:
        if long is not None:
            rest, newline, block = block.partition(b"\n")
            long = LongLine(long.begins, long.size + len(rest), long.returns + rest.count(b"\r"))
            if not newline:
                continue
            yield long
            long = None
        lines = block.split(b"\n")
        lines[0] = carry + lines[0]
        carry = lines.pop()
        if lines and len(lines[0]) > MAX_LINE_BYTES:
            first = lines.pop(0)
            yield _long(first)
        if lines:
            yield lines
        if len(carry) > MAX_LINE_BYTES:
            long, carry = _long(carry), b""
    if long is not None:
        yield long
    elif carry := carry.rstrip(b"\x1a"):
        yield [carry]
