r"""Splits a range of a file into lines, in bounded memory.

A line ends only at `\n`. It belongs to the range in which it begins. Do not remove the limit on the length of a line,
because a file without newlines would fill the memory.
"""

from collections.abc import Iterable, Iterator
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


def without_byte_order_marks(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield blocks without byte-order marks at the starts of lines. The first block begins a line.

    Files that were joined by `cat` have such a mark in the middle.
    """
    marked = b"\n" + BYTE_ORDER_MARK
    before, held = b"\n", b""
    for block in blocks:
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
    return LongLine(line[:EXCERPT_BYTES], len(line))


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
    elif carry := carry.rstrip(b"\x1a"):
        yield [carry]
