"""Sources of a stream are files, folders and S3 objects. Reading resumes at a position, or is refused."""

import errno
import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from common.errors import DataError
from corpus.reading.compression import BLOCK_BYTES
from corpus.stream import part_files as files
from corpus.stream.part_files import reader_of
from corpus.stream.parts import Position
from tests.corpus.stream.reading import Clock, begin, lines, read

LINES = [f"line {number} of many, with words {number % 97}" for number in range(3_000)]
CONTENT = "".join(f"{line}\n" for line in LINES).encode()


@pytest.mark.parametrize("lines_read", [1, 2_047, 2_048, 4_095, 4_096])
def test_a_compressed_file_is_resumed_at_any_offset(tmp_path: Path, lines_read: int) -> None:
    path, made = str(tmp_path / "texts.gz"), [f"{number:063}".encode() for number in range(2 * BLOCK_BYTES // 64)]
    Path(path).write_bytes(gzip.compress(b"".join(line + b"\n" for line in made)))
    source = files.SourceFiles((path,), 0, 1, follow=False, clock=Clock())
    found = [
        line for batch in source.batches(Position(offsets={path: 64 * lines_read})) if batch for line in batch.lines
    ]
    assert found == made[lines_read:]


def test_the_assignment_of_files_to_readers_never_changes(tmp_path: Path, stream: Path) -> None:
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


def test_a_disk_that_fails_is_reported_with_its_reason(tmp_path, monkeypatch, messages) -> None:
    (tmp_path / "some.txt").write_bytes(CONTENT)

    def fail(*_: object) -> NoReturn:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(files, "open_range", fail)
    with messages.raises(DataError):
        read(begin(tmp_path / "stream", tmp_path / "some.txt"))


def test_a_changed_file_is_refused_if_it_is_not_followed(tmp_path, monkeypatch, messages) -> None:
    path = tmp_path / "texts"
    path.write_bytes(CONTENT)
    blocks = files._blocks_between

    def growing(address: str, start: int, end: int) -> Iterator[bytes]:
        yield from blocks(address, start, end)
        path.write_bytes(CONTENT + b"more")

    monkeypatch.setattr(files, "_blocks_between", growing)
    with messages.raises(DataError):
        read(begin(tmp_path / "stream", path))
