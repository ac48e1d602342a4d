"""A folder with a predictable name is used only if nobody else can write to it; one of a process is gone with it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from common.errors import DataError
from common.private_folders import make_private_folder, temporary_folder
from tests.users import as_another, open_folder


def test_it_is_made_for_this_user_alone_and_found_again(tmp_path: Path) -> None:
    for _ in range(2):
        assert make_private_folder(tmp_path / "mine", "") == tmp_path / "mine"
        assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o700
    (tmp_path / "mine").chmod(0o755)  # others may look
    assert make_private_folder(tmp_path / "mine", "") == tmp_path / "mine"


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o1777])
def test_one_that_others_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    with pytest.raises(
        DataError, match=r"/open can be written to by other users, so Shoal does not trust it; remove it, or wait"
    ):
        make_private_folder(tmp_path / "open", "wait")


def test_a_link_is_refused_wherever_it_leads(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir(0o700)
    for goal in ("own", "nowhere"):
        (tmp_path / goal[:2]).symlink_to(tmp_path / goal)
        with pytest.raises(DataError, match="is a link"):
            make_private_folder(tmp_path / goal[:2], "wait")


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="is not a folder"):
        make_private_folder(tmp_path / "file", "wait")


def test_that_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "theirs").mkdir(0o700)
    other = os.geteuid() + 1
    monkeypatch.setattr("common.private_folders.os.geteuid", lambda: other)
    with pytest.raises(DataError, match="belongs to another user"):
        make_private_folder(tmp_path / "theirs", "wait")


PROCESS = """
import os, signal, sys
from pathlib import Path
from common.private_folders import temporary_folder
with temporary_folder(Path(sys.argv[1]), ".texts-") as folder:
    (folder / "many").write_text("texts")
    print(folder, flush=True)
    sys.stdin.read()
"""


def killed(home: Path) -> Path:
    """The folder of a process that was killed."""
    with living(home) as (process, folder):
        process.kill()
    return folder


@contextmanager
def living(home: Path) -> Iterator[tuple["subprocess.Popen[str]", Path]]:
    """A process, and its folder."""
    line = [sys.executable, "-c", PROCESS, str(home)]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().rstrip())


def test_a_temporary_folder_is_gone_with_its_content_and_its_lock(tmp_path: Path) -> None:
    def stopped() -> None:
        with temporary_folder(tmp_path, ".texts-") as folder:
            (folder / "some").write_text("")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_uses_stays(tmp_path: Path) -> None:
    with living(tmp_path) as (_, used), temporary_folder(tmp_path, ".texts-") as own:
        left = [killed(tmp_path) for _ in range(2)]
        assert left[1].exists()
        with temporary_folder(tmp_path, ".texts-"):
            assert [folder.exists() for folder in left] == [False, False]
        assert (used / "many").read_text() == "texts"
        assert own.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_which_nobody_can_tell_who_uses_it_stays(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / ".texts-link").symlink_to(tmp_path / "precious")
    (tmp_path / ".texts-link.lock").write_text("")
    (tmp_path / ".texts-none").mkdir()  # without a lock
    (tmp_path / ".texts-odd").mkdir()
    (tmp_path / ".texts-odd.lock").symlink_to(tmp_path / "made")
    with temporary_folder(tmp_path, ".texts-"):
        pass
    there = {path.name for path in tmp_path.iterdir()}
    assert there >= {"precious", ".texts-link", ".texts-none", ".texts-odd"}
    assert "made" not in there


def test_the_folder_of_another_user_stays() -> None:
    def make_beside(home: Path, theirs: Path) -> bool:
        with temporary_folder(home, ".texts-") as own:
            return own.exists() and theirs.exists()

    with open_folder() as home, temporary_folder(home, ".texts-") as theirs:
        assert as_another(lambda: make_beside(home, theirs))
        assert theirs.exists()
