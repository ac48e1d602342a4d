"""Lines are packed into parts without loss or repetition, for any line lengths, part sizes and restarts."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from corpus.reading.lines import LongLine
from corpus.stream.lines import batch_of_lines, texts_of_batch
from corpus.stream.packing import Packer
from corpus.stream.parts import ROW_TOKENS, Part, Position
from corpus.stream.stream_settings import StreamSettings
from corpus.stream.tokenisers import words_of_lines
from tests.corpus.stream.reading import words

tokens_of = words_of_lines(StreamSettings(sources=("/a",), tokeniser="spaces", lowercase=False))
word = st.sampled_from(["fish", "shoal", "swim", "é", "."])
sound = st.lists(word, max_size=9).map(lambda found: " ".join(found).encode())
long = st.builds(lambda word, times: b" ".join([word.encode()] * times), word, st.integers(100, 700))
malformed = st.sampled_from([b"\xff fish", b"a\0b"])
content = st.lists(st.one_of(sound, sound, long, malformed), max_size=40)


def pack(lines: Sequence[bytes], rows: int, number: int, after: Position, size: int) -> tuple[Packer, list[Part]]:
    """Pack the lines of the file `/a` after a position, in batches of `size` lines."""
    packer = Packer(rows, number, after)
    found: list[Part] = []
    offset = after.offsets.get("/a", 0)
    passed = 0
    rest = list(lines)
    while passed < offset:
        passed += len(rest.pop(0)) + 1
    assert passed == offset, "an offset is inside of a line"
    while rest:
        batch = batch_of_lines("/a", rest[:size], offset)
        rest, offset = rest[size:], batch.ends[-1]
        texts, kept = texts_of_batch(batch)
        found += packer.add(batch, kept, tokens_of(texts))
    return packer, found


def expected(lines: Sequence[bytes]) -> list[str]:
    kept = tokens_of(texts_of_batch(batch_of_lines("/a", list(lines), 0))[0])
    while kept and kept[-1] == "\n":
        kept.pop()
    return kept


@given(lines=content, rows=st.integers(1, 3), size=st.integers(1, 9), data=st.data())
def test_rows_have_the_tokens_of_the_lines_after_any_restarts(lines, rows, size, data) -> None:
    kept: list[Part] = []
    for _ in range(data.draw(st.integers(0, 3), "restarts")):
        after = kept[-1].after if kept else Position()
        _, found = pack(lines, rows, len(kept), after, size)
        kept += found[: data.draw(st.integers(0, len(found)), "parts before the crash")]
    packer, found = pack(lines, rows, len(kept), kept[-1].after if kept else Position(), size)
    last = packer.finish()
    kept += found if last is None else [*found, last]

    assert words(kept) == expected(lines)
    assert [part.number for part in kept] == list(range(len(kept)))
    for part in kept:
        assert part.tokens.shape == (rows, ROW_TOKENS)
        assert [words([part]).count(name) for name in part.words] == part.counts.tolist()
    bad = len(lines) - len(texts_of_batch(batch_of_lines("/a", lines, 0))[0])
    assert (packer.lines, packer.malformed) == (len(lines), bad)
    assert packer.text_bytes == sum(map(len, lines)) + len(lines)
    assert packer.words == sum(token != "\n" for token in expected(lines))
    if kept and last is not None:
        assert kept[-1].after.lines == packer.lines
        assert kept[-1].after.words == packer.words


@given(lines=content, size=st.integers(1, 9))
def test_parts_do_not_depend_on_the_size_of_batches(lines: list[bytes], size: int) -> None:
    one, other = (pack(lines, 1, 0, Position(), each)[1] for each in (size, 40))
    assert [words([part]) for part in one] == [words([part]) for part in other]
    assert [part.after.words for part in one] == [part.after.words for part in other]


def test_the_position_in_a_line_has_its_number_of_tokens() -> None:
    packer, (first, second) = pack([b"a", b"b " * 300], 1, 0, Position(), 9)
    assert first.after == Position(offsets={"/a": 2}, lines=1, words=127, text_bytes=2, begun={"/a": 126})
    assert second.after == Position(offsets={"/a": 2}, lines=1, words=255, text_bytes=2, begun={"/a": 254})
    last = packer.finish()
    assert last.after == Position(offsets={"/a": 603}, lines=2, words=301, text_bytes=603)
    assert packer.finish() is None


def test_a_shorter_line_at_the_position_loses_only_that_line() -> None:
    packer = Packer(1, 5, Position(offsets={"/a": 10}, begun={"/a": 100}))
    batch = batch_of_lines("/a", [b"other words", b"next"], 10)
    assert list(packer.add(batch, (0, 1), ["other", "words", "\n", "next", "\n"])) == []
    part = packer.finish()
    assert words([part]) == ["\n", "next"]


def test_the_position_has_the_identity_of_a_source() -> None:
    packer = Packer(1, 0, Position(offsets={"s3://a/b": 4}, identities={"s3://a/b": "1"}, ended=("/z",)))
    for batch in (
        batch_of_lines("s3://a/c.gz", [b"fish"], 0)._replace(identity="2"),
        batch_of_lines("s3://a/c.gz", [], 5)._replace(identity="2", ended=True),
    ):
        assert list(packer.add(batch, range(len(batch.lines)), ["fish", "\n"] if batch.lines else [])) == []
    part = packer.finish()
    assert part.after.identities == {"s3://a/b": "1", "s3://a/c.gz": "2"}
    assert part.after.ended == ("/z", "s3://a/c.gz")
    assert part.after.offsets == {"s3://a/b": 4, "s3://a/c.gz": 5}


def test_a_too_long_line_is_counted_with_all_its_bytes() -> None:
    packer = Packer(1, 0, Position())
    batch = batch_of_lines("/a", LongLine(b"x" * 80, 5_000_000), 7)
    assert list(packer.add(batch._replace(too_long=True), (), [])) == []
    assert (packer.lines, packer.malformed, packer.text_bytes) == (1, 1, 5_000_001)
    assert batch.ends == [5_000_008]
