"""Bytes are split into the same lines for any division into blocks, and texts are read in batches, in order."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from corpus.reading import texts as reading
from corpus.reading.batches import TextBatch
from corpus.reading.encodings import STANDARD_INPUT, EncodingError
from corpus.reading.lines import LongLine, split_lines
from corpus.reading.tally import Tally
from corpus.reading.texts import join_batches, plain_texts

BATCHES = st.lists(st.lists(st.text("ab", max_size=9), min_size=1, max_size=4), max_size=9)


def numbered(batches: list[list[str]], fault: bool) -> Iterator[TextBatch]:
    done = 0
    for texts in batches:
        yield TextBatch(texts, list(range(done, done + len(texts))), sum(map(len, texts)))
        done += len(texts)
    if fault:
        raise DataError("damaged")


@given(BATCHES, st.booleans())
def test_blocks_have_all_texts_in_order_before_an_error(batches: list[list[str]], fault: bool) -> None:
    blocks: list[TextBatch] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_BLOCK_TEXTS", 5)
        patch.setattr(reading, "_BLOCK_BYTES", 20)
        try:
            blocks.extend(join_batches(numbered(batches, fault)))
            failed = False
        except DataError:
            failed = True
    assert failed == fault
    assert [text for block in blocks for text in block.texts] == [text for texts in batches for text in texts]
    assert [code for block in blocks for code in block.codes] == list(range(sum(map(len, batches))))
    assert sum(block.raw_bytes for block in blocks) == sum(len(text) for texts in batches for text in texts)
    for block in blocks:
        assert 1 <= len(block.texts) < 5 + 4
        assert block.raw_bytes < 20 + 4 * 9
    for block in blocks[:-1]:
        assert len(block.texts) >= 5 or block.raw_bytes >= 20


def test_lines_that_are_too_long_are_counted_by_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corpus.reading.lines.MAX_LINE_BYTES", 9)
    tally = Tally()
    content = b"one\n" + b"x" * 20 + b"\r\ntwo\r\n" + b"y" * 20 + b"\n" + b"z" * 20
    blocks = iter([content[start : start + 8] for start in range(0, len(content), 8)])
    assert [text for batch in plain_texts(blocks, "/a", tally) for text in batch.texts] == ["one", "two"]
    assert tally.counts["lines"] == 5
    assert [(place.reason, place.line) for place in tally.malformed_lines()] == [("too_long", n) for n in (2, 4, 5)]


def test_standard_input_is_read_as_a_file_is(messages) -> None:
    tally = Tally()
    blocks = [
        b"\xef\xbb",
        b"\xbfgood\n\xef",
        b"\xbb\xbffine\n",
        b"\xff\xff\xff\n",
        "na\u00efve\n".encode(),
        b"so\r\n\x1a",
    ]
    read = [text for batch in plain_texts(iter(blocks), STANDARD_INPUT, tally) for text in batch.texts]
    assert read == ["good", "fine", "na\u00efve", "so"]
    assert [(place.reason, place.line) for place in tally.malformed_lines()] == [("not_utf8", 3)]
    for first in ("", "na\u00efve\n"):
        with messages.raises(EncodingError):
            list(plain_texts(iter([first.encode(), b"good\nmy caf\xe9 lamp\n"]), STANDARD_INPUT, Tally()))


def test_a_long_line_keeps_its_beginning_and_size() -> None:
    def blocks() -> Iterator[bytes]:
        yield b"x\ny"
        yield from [b"y" * (1 << 20)] * 5
        yield b"\r\nz\n"

    assert list(split_lines(blocks())) == [[b"x"], LongLine(b"y" * 320, (5 << 20) + 2, returns=1), [b"z"]]
