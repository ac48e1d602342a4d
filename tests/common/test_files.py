"""Files appear whole or not at all; a lock is held until its handle is closed, and is one of a file that is there."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from common.files import files_below, lock, whole_file, write_whole
from experiments.records.launches import write_launch


def stop(path: Path) -> None:
    with whole_file(path) as partial:
        partial.write_text("half")
        raise KeyboardInterrupt


def write_into_a_folder(path: Path) -> None:
    path = path.with_name("folder")
    path.mkdir()
    write_whole(path, b"new")


@pytest.mark.parametrize("write", [stop, write_into_a_folder])
def test_what_was_not_finished_leaves_nothing_and_the_old_file(tmp_path: Path, write: Callable[[Path], None]) -> None:
    (tmp_path / "file").write_text("old")
    with pytest.raises((KeyboardInterrupt, IsADirectoryError)):
        write(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "old"
    assert not list(tmp_path.glob(".*"))


def test_a_file_is_written_in_the_place_of_a_link_to_another(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("theirs")
    for name in ("file", ".file.partial"):
        (tmp_path / name).symlink_to(tmp_path / "theirs")
    for content in (b"one", b"other"):
        write_whole(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == content
    assert (tmp_path / "theirs").read_text() == "theirs"


def test_two_attempts_at_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    with whole_file(tmp_path / "file") as one, whole_file(tmp_path / "file") as other:
        one.write_text("whole")
        other.write_text("whole, too")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["whole"]


def test_a_run_whose_launch_cannot_be_written_down_is_no_failure(tmp_path: Path) -> None:
    write_launch(tmp_path / "gone", goes_on=False, seconds=1.0)


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_lock_is_held_until_its_handle_is_closed(tmp_path: Path, is_folder: bool) -> None:
    path = tmp_path if is_folder else tmp_path / "lock"
    handle = lock(path, is_folder=is_folder)
    assert handle is not None
    with pytest.raises(BlockingIOError):
        lock(path, is_folder=is_folder)
    os.close(handle)
    again = lock(path, is_folder=is_folder)
    assert again is not None
    os.close(again)


def test_a_lock_on_a_file_that_its_holder_has_removed_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = fcntl.flock

    def after_its_end(handle: int, operation: int) -> None:
        (tmp_path / "lock").unlink()
        real(handle, operation)

    monkeypatch.setattr(fcntl, "flock", after_its_end)
    assert lock(tmp_path / "lock") is None


def test_a_folder_that_goes_while_it_is_listed_has_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    for name in ("a/1", "b/2"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).touch()
    listed = os.scandir

    def scandir(path: str) -> object:
        if Path(path) != folder:  # one of the two, and the other goes
            (folder / ({"a", "b"} - {Path(path).name}).pop()).rename(tmp_path / "gone")
            monkeypatch.undo()
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert len(files_below(folder)) == 1
