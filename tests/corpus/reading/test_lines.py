"""Bytes are split into the same lines for any division into blocks."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.reading.lines import LongLine, split_lines

block = st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\xff"]), max_size=7).map(b"".join)


@given(blocks=st.lists(block, max_size=20))
def test_lines_keep_all_their_bytes(blocks: list[bytes]) -> None:
    whole = b"".join(blocks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("corpus.reading.lines.MAX_LINE_BYTES", 9)
        found = list(split_lines(iter(blocks)))
    sizes = [each.size if isinstance(each, LongLine) else [*map(len, each)] for each in found]
    flat = [size for each in sizes for size in (each if isinstance(each, list) else [each])]
    assert flat == ([len(line) for line in whole.removesuffix(b"\n").split(b"\n")] if whole else [])
    assert [] not in found


def test_a_long_line_keeps_its_beginning_and_size() -> None:
    def blocks() -> Iterator[bytes]:
        yield b"x\ny"
        yield from [b"y" * (1 << 20)] * 5
        yield b"\r\nz\n"

    assert list(split_lines(blocks())) == [[b"x"], LongLine(b"y" * 320, (5 << 20) + 2), [b"z"]]
