r"""Splits a range of a file into lines, in bounded memory.

A line ends only at `\n`. It belongs to the range in which it begins. Do not remove the limit on the length of a line,
because a file without newlines would fill the memory.
"""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from corpus.reading.compression import BLOCK_BYTES
from corpus.reading.formats import BYTE_ORDER_MARK, MAX_LINE_BYTES
from corpus.reading.tally import EXCERPT_BYTES


class LongLine(NamedTuple):
    """Beginning of a line of more than MAX_LINE_BYTES."""

    begins: bytes
    size: int
    """Length of the whole line in bytes, without the newline."""


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


def without_byte_order_mark(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the blocks of a file without the byte-order mark at its start."""
    first = b""
    for block in blocks:
        first += block
        if len(first) >= len(BYTE_ORDER_MARK):
            break
    if first := first.removeprefix(BYTE_ORDER_MARK):
        yield first
    yield from blocks


def _long(line: bytes) -> LongLine:
    return LongLine(line[:EXCERPT_BYTES], len(line))


def split_lines(blocks: Iterator[bytes]) -> Iterator[list[bytes] | LongLine]:
    """Split blocks of bytes into lines, and yield them in lists, without newlines.

    A line that is too long is yielded alone, as a LongLine. Blocks must be shorter than MAX_LINE_BYTES. If `blocks`
    raises an exception, all complete lines before it are yielded first.
    """
    carry = b""
    long: LongLine | None = None
    for block in blocks:
        if long is not None:
            rest, newline, block = block.partition(b"\n")
            long = LongLine(long.begins, long.size + len(rest))
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
    elif carry:
        yield [carry]
