"""Files are written atomically, listed, and locked."""

import fcntl
import os
from pathlib import Path

import pytest

from common.files import DOCUMENT_BYTES, files_below, lock, read_regular, read_tail, whole_file, write_whole
from trainer.output.run_files import read_json


def stop(path: Path) -> None:
    with whole_file(path) as partial:
        partial.write_text("half")
        raise KeyboardInterrupt


def write_into_a_folder(path: Path) -> None:
    path = path.with_name("folder")
    path.mkdir()
    write_whole(path, b"new")


@pytest.mark.parametrize("write", [stop, write_into_a_folder])
def test_an_unfinished_write_keeps_the_old_file(tmp_path, write) -> None:
    (tmp_path / "file").write_text("old")
    with pytest.raises((KeyboardInterrupt, IsADirectoryError)):
        write(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "old"
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "large"])
def test_a_file_of_somebody_else_is_refused_unless_it_is_regular_and_small(tmp_path, kind) -> None:
    path = tmp_path / "summary.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        path.touch()
        os.truncate(path, DOCUMENT_BYTES + 1)
    with pytest.raises(OSError, match=str(path)):
        read_regular(path, DOCUMENT_BYTES)
    assert read_json(path) is None


def test_the_end_of_a_log_is_read(tmp_path) -> None:
    (tmp_path / "log").write_bytes(b"one\ntwo\xff\n")
    assert read_tail(tmp_path / "log", 5) == "two\ufffd\n"


def test_writing_replaces_a_link_and_keeps_its_target(tmp_path) -> None:
    (tmp_path / "theirs").write_text("theirs")
    for name in ("file", ".file.partial"):
        (tmp_path / name).symlink_to(tmp_path / "theirs")
    for content in (b"one", b"other"):
        write_whole(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == content
    assert (tmp_path / "theirs").read_text() == "theirs"


def test_concurrent_writers_of_one_file_do_not_interfere(tmp_path) -> None:
    with whole_file(tmp_path / "file") as one, whole_file(tmp_path / "file") as other:
        one.write_text("whole")
        other.write_text("whole, too")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["whole"]


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_lock_is_held_until_its_descriptor_is_closed(tmp_path, is_folder) -> None:
    path = tmp_path if is_folder else tmp_path / "lock"
    handle = lock(path, is_folder=is_folder)
    assert handle is not None
    with pytest.raises(BlockingIOError):
        lock(path, is_folder=is_folder)
    os.close(handle)
    again = lock(path, is_folder=is_folder)
    assert again is not None
    os.close(again)


def test_locking_a_file_that_its_holder_removed_returns_none(tmp_path, monkeypatch) -> None:
    real = fcntl.flock

    def after_its_end(handle: int, operation: int) -> None:
        (tmp_path / "lock").unlink()
        real(handle, operation)

    monkeypatch.setattr(fcntl, "flock", after_its_end)
    assert lock(tmp_path / "lock") is None


def test_a_folder_removed_during_listing_is_skipped(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "folder"
    for name in ("a/1", "b/2"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).touch()
    listed = os.scandir

    def scandir(path: str) -> object:
        if Path(path) != folder:  # one folder disappears while the other is listed
            (folder / ({"a", "b"} - {Path(path).name}).pop()).rename(tmp_path / "gone")
            monkeypatch.undo()
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert len(files_below(folder)) == 1
