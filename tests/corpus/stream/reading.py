"""Helpers for tests of streams: they run readers with a simulated clock, and return the content of parts."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from corpus.stream.parts import END_OF_LINE, Part, part_numbers, part_path, read_part, write_part
from corpus.stream.progress import Status, read_status, write_end
from corpus.stream.reader import read_stream
from corpus.stream.stream_settings import StreamSettings, write_settings


class Clock:
    """Clock that advances only while a reader sleeps. After each sleep, it calls `then` with the current time."""

    def __init__(self, then: Callable[[float], None] = lambda _: None) -> None:
        self.now = 0.0
        self._then = then

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self._then(self.now)


def begin(stream: Path, *sources: object, **settings: Any) -> Path:
    """Create a stream with small parts, which a reader writes without waiting for trainers. Return its folder."""
    made = {"part_rows": 2, "tokeniser": "spaces", "ahead": 100_000, **settings}
    write_settings(stream, StreamSettings(sources=tuple(map(str, sources)), **made))
    return stream


def read(stream: Path, then: Callable[[float], None] = lambda _: None, reader: int = 0, readers: int = 1) -> Status:
    """Run a reader of a stream, and return its status. `then` is called after each sleep, and can raise Stopped."""
    clock = Clock(then)
    return read_stream(stream, reader, readers, clock=clock, sleep=clock.sleep)


class Stopped(BaseException):
    """Raised inside a reader to stop it, as a signal would."""


def read_until(stream: Path, holds: Callable[[float], bool]) -> None:
    """Run the reader of a stream until `holds`, which is called with the time after each sleep, returns true."""

    def then(now: float) -> None:
        assert now < 30_000, "it never holds"
        if holds(now):
            raise Stopped

    try:
        read(stream, then)
    except Stopped:
        return
    raise AssertionError("its sources ended")


def read_followed(stream: Path, texts: Path, found: Iterable[str], **settings: Any) -> Path:
    """Read a followed stream, in which one file has these lines, and mark the stream as ended. Return its folder."""
    texts.write_text("".join(f"{line}\n" for line in found))
    begin(stream, texts, follow=True, quiet_seconds=1.0, **settings)
    read_until(stream, lambda now: now > 10)
    write_end(stream / "reader-0", read_status(stream))
    return stream


def parts(stream: Path, reader: int = 0) -> list[Part]:
    folder = stream / f"reader-{reader}"
    return [read_part(part_path(folder, number)) for number in part_numbers(folder)]


def tokens(found: list[Part]) -> list[str]:
    """Return all tokens of the parts, which are words and newlines."""
    names = [("\n", *part.words) for part in found]
    return [of[token] for of, part in zip(names, found, strict=True) for token in part.tokens.ravel().tolist()]


def words(found: list[Part]) -> list[str]:
    """Return all tokens of the parts, without the newlines at the end."""
    kept = tokens(found)
    while kept and kept[-1] == "\n":
        kept.pop()
    return kept


def lines(stream: Path, reader: int = 0) -> list[str]:
    """Return the lines in a reader's parts that have words. The words of a line are separated by single spaces."""
    return [line.strip() for line in " ".join(words(parts(stream, reader))).split("\n") if line.strip()]


def filled(part: Part) -> int:
    """Return the number of tokens before a part's padding, including the end of the last line."""
    return int((part.tokens.ravel() != END_OF_LINE).nonzero()[0][-1]) + 2


def interrupt(stream: Path, after: int) -> None:
    """Run a reader of a stream that is killed after it wrote `after` parts."""

    def killed(folder: Path, part: Part) -> None:
        if part.number == after:
            raise KeyboardInterrupt
        write_part(folder, part)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("corpus.stream.reader.write_part", killed)
        with pytest.raises(KeyboardInterrupt):
            read(stream)
    assert len(parts(stream)) == after
