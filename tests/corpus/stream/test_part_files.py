"""Files, folders and objects as sources of a stream: what is read, from where on, and what is refused."""

import bz2
import errno
import gzip
import lzma
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from corpus.reading import s3
from corpus.reading.compression import BLOCK_BYTES
from corpus.stream import part_files as files
from corpus.stream.part_files import reader_of
from corpus.stream.parts import Part, Position, write_part
from tests.corpus.stream.reading import Clock, begin, lines, parts, read, read_until

LINES = [f"line {number} of many, with words {number % 97}" for number in range(3_000)]
CONTENT = "".join(f"{line}\n" for line in LINES).encode()
PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd.compress}


def put(key: str, content: bytes) -> str:
    s3.client().put_object(Bucket="pile", Key=key, Body=content)
    return f"s3://pile/{key}"


def interrupt(stream: Path, after: int) -> None:
    """Read a stream until a reader is killed after so many parts."""

    def killed(folder: Path, part: Part) -> None:
        if part.number == after:
            raise KeyboardInterrupt
        write_part(folder, part)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("corpus.stream.reader.write_part", killed)
        with pytest.raises(KeyboardInterrupt):
            read(stream)
    assert len(parts(stream)) == after


@pytest.mark.parametrize(
    ("name", "after"),
    [*(("plain.txt", after) for after in (0, 1, 50)), *((f"packed.txt{ending}", 50) for ending in PACK)],
)
def test_a_file_is_read_once_also_after_a_crash(tmp_path: Path, stream: Path, name: str, after: int) -> None:
    path = tmp_path / name
    path.write_bytes(PACK.get(path.suffix, bytes)(CONTENT))
    interrupt(begin(stream, path), after)
    read(stream)
    assert lines(stream) == LINES
    assert parts(stream)[-1].after.offsets == {str(path): len(CONTENT)}


@pytest.mark.parametrize("lines_read", [1, 2_047, 2_048, 4_095, 4_096])
def test_a_compressed_file_goes_on_behind_what_was_read_also_between_blocks(tmp_path: Path, lines_read: int) -> None:
    path, made = str(tmp_path / "texts.gz"), [f"{number:063}".encode() for number in range(2 * BLOCK_BYTES // 64)]
    Path(path).write_bytes(gzip.compress(b"".join(line + b"\n" for line in made)))
    source = files.Files((path,), follow=False, reader=0, readers=1, clock=Clock())
    found = [
        line for batch in source.batches(Position(offsets={path: 64 * lines_read})) if batch for line in batch.lines
    ]
    assert found == made[lines_read:]


@given(names=st.lists(st.text(), max_size=20), readers=st.integers(1, 9))
def test_each_file_has_one_reader_that_its_name_alone_decides(names: list[str], readers: int) -> None:
    assert [reader_of(name, readers) for name in names] == [reader_of(name, readers) for name in reversed(names)][::-1]
    assert all(0 <= reader_of(name, readers) < readers for name in names)


def test_readers_share_the_files_for_ever_in_the_same_way(tmp_path: Path, stream: Path) -> None:
    assert [reader_of(f"/texts/{name}", 3) for name in range(9)] == [2, 1, 2, 0, 2, 0, 0, 0, 0]
    (tmp_path / "texts").mkdir()
    for number in range(20):
        (tmp_path / "texts" / str(number)).write_text(f"line {number}\n")
    begin(stream, tmp_path / "texts", readers=3)
    for reader in range(3):
        read(stream, reader=reader, readers=3)
    found = [line for reader in range(3) for line in lines(stream, reader)]
    assert sorted(found) == sorted(f"line {number}" for number in range(20))


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    return tmp_path / "stream"


def grow(stream: Path, steps: list[Callable[[], object]], expected: list[str]) -> None:
    """Read a growing folder, in which a step is done whenever everything was read, until all is in parts."""
    waiting = iter(steps)
    last = 0.0

    def holds(now: float) -> bool:
        nonlocal last
        if now - last > files.LOOK_SECONDS + 1:
            last = now
            step = next(waiting, None)
            if step is None:
                return lines(stream) == expected or now > 1_000
            step()
        return False

    read_until(stream, holds)
    assert lines(stream) == expected


def test_a_folder_that_grows_is_read_as_it_grows(tmp_path: Path, stream: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    begin(stream, texts, follow=True, quiet_seconds=20.0)

    def write(name: str, content: bytes) -> Callable[[], object]:
        return lambda: (texts / name).write_bytes(content)

    def append(name: str, content: bytes) -> Callable[[], object]:
        return lambda: (texts / name).open("ab", buffering=0).write(content)

    steps = [
        write("b", b"one\ntw"),
        append("b", b"o"),
        append("b", b"\nthr"),
        write("a.gz", gzip.compress(b"new")),
        append("b", b"ee\n"),
    ]
    grow(stream, steps, ["one", "two", "new", "three"])
    # A reader that is started again, too, takes what was added, and only that.
    grow(stream, [append("b", b"four\n"), write("c", b"five\n")], ["one", "two", "new", "three", "four", "five"])


@pytest.mark.parametrize("cut", [400_000, BLOCK_BYTES, BLOCK_BYTES - 1])
def test_the_end_of_whole_lines_is_found_far_from_the_end(tmp_path: Path, stream: Path, cut: int) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\n" + b"x" * cut)
    begin(stream, log, follow=True, quiet_seconds=20.0)
    grow(stream, [lambda: None], ["one"])
    grow(stream, [lambda: log.open("ab").write(b"\ntwo\n")], ["one", "two"])


@pytest.mark.usefixtures("pile")
def test_objects_are_read_once_also_after_a_crash(tmp_path: Path, stream: Path) -> None:
    plain, packed = put("some/1.txt", CONTENT), put("some/2.txt.gz", gzip.compress(CONTENT))
    put("some/_hidden", b"hidden\n")
    begin(stream, "s3://pile/some")
    interrupt(stream, 130)
    read(stream)
    assert lines(stream) == LINES + LINES
    last = parts(stream)[-1].after
    assert last.offsets == {plain: len(CONTENT), packed: len(CONTENT)}
    assert last.identities.keys() == {plain, packed}


@pytest.mark.usefixtures("pile")
def test_a_prefix_that_grows_is_read_as_it_grows(tmp_path: Path, stream: Path) -> None:
    begin(stream, "s3://pile/grows/", follow=True, quiet_seconds=20.0)
    steps = [
        lambda: put("grows/2", b"one\ntwo"),
        lambda: put("grows/1.gz", gzip.compress(b"three\n")),
        lambda: put("grows/3", b""),
    ]
    grow(stream, steps, ["one", "two", "three"])
    grow(stream, [lambda: put("grows/4", b"four")], ["one", "two", "three", "four"])


@pytest.mark.usefixtures("pile")
def test_an_object_that_was_replaced_is_refused(tmp_path: Path, stream: Path) -> None:
    put("replaced/1", b"one\n")
    begin(stream, "s3://pile/replaced", follow=True, quiet_seconds=1.0)
    read_until(stream, lambda _: bool(parts(stream)))
    put("replaced/1", b"two\n")
    with pytest.raises(DataError, match=r"s3://pile/replaced/1 is another object than .* 4 bytes were read"):
        read(stream)


@pytest.mark.usefixtures("pile")
@pytest.mark.parametrize("follow", [False, True])
def test_a_bucket_that_is_not_there_is_named(tmp_path: Path, follow: bool) -> None:
    with pytest.raises(DataError, match="there is no bucket no-pile"):
        read(begin(tmp_path / "stream", "s3://no-pile/some", follow=follow))


def test_a_disk_that_fails_is_reported_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some.txt").write_bytes(CONTENT)

    def fail(*_: object) -> NoReturn:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(files, "open_range", fail)
    with pytest.raises(DataError, match=rf"cannot read {tmp_path}/some\.txt: Input/output error"):
        read(begin(tmp_path / "stream", tmp_path / "some.txt"))


def test_an_empty_folder_that_may_grow_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    read_until(begin(tmp_path / "other", tmp_path / "texts", follow=True), lambda now: now > 60)


@pytest.mark.parametrize("name", ["texts", "texts.gz"])
def test_a_file_that_is_shorter_than_its_offset_is_refused(tmp_path: Path, stream: Path, name: str) -> None:
    pack = PACK.get(Path(name).suffix, bytes)
    path = tmp_path / name
    path.write_bytes(pack(CONTENT))
    begin(stream, path)
    interrupt(stream, 3)
    path.write_bytes(pack(b"short\n"))
    read_so_far = parts(stream)[-1].after.offsets[str(path)]
    with pytest.raises(DataError, match=f"{name} has 6 bytes, and {read_so_far:,} were read of it; give new files new"):
        read(stream)


@pytest.mark.parametrize("follow", [False, True])
def test_a_file_that_is_gone_before_it_was_read_to_its_end_is_named(tmp_path: Path, stream: Path, follow: bool) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    for name in "ab":
        (texts / name).write_text("five words of a line\n" * 100)
    begin(stream, texts, follow=follow)
    interrupt(stream, 2)
    begun = parts(stream)[-1].after
    ((there, _),) = begun.begun.items()
    (texts / "a").rename(tmp_path / "elsewhere")
    with pytest.raises(DataError, match=f"{there} is gone, and {begun.offsets[there]:,} bytes were read of it; put it"):
        read(stream)
    (tmp_path / "elsewhere").rename(texts / "a")
    read_until(stream, lambda now: now > 60) if follow else read(stream)
    assert lines(stream) == ["five words of a line"] * 200


def test_files_of_a_folder_that_grows_may_go_when_they_were_read(tmp_path: Path, stream: Path) -> None:
    (tmp_path / "texts").mkdir()
    begin(stream, tmp_path / "texts", follow=True, quiet_seconds=20.0)

    def write(name: str) -> Callable[[], object]:
        return lambda: (tmp_path / "texts" / name).write_text(f"{name}\n")

    grow(stream, [write("one"), (tmp_path / "texts" / "one").unlink, write("two")], ["one", "two"])
    grow(stream, [(tmp_path / "texts" / "two").unlink, write("three")], ["one", "two", "three"])


def test_a_damaged_archive_is_refused_after_all_that_can_be_read(tmp_path: Path, stream: Path) -> None:
    path = tmp_path / "texts.gz"
    path.write_bytes(gzip.compress(CONTENT)[:-1_000])
    with pytest.raises(DataError, match=r"texts.gz is damaged: the compressed data end too early; give it whole"):
        read(begin(stream, path))
    found = lines(stream)
    assert found[:-1] == LINES[: len(found) - 1]


def test_a_changed_file_is_refused_where_it_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "texts"
    path.write_bytes(CONTENT)
    blocks = files._blocks_between

    def growing(address: str, start: int, end: int) -> Iterator[bytes]:
        yield from blocks(address, start, end)
        path.write_bytes(CONTENT + b"more")

    monkeypatch.setattr(files, "_blocks_between", growing)
    with pytest.raises(DataError, match="texts was changed while it was read; begin a new stream that follows"):
        read(begin(tmp_path / "stream", path))
