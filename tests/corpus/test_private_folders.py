"""A folder with a predictable name is used only if nobody else can write to it."""

import os
from pathlib import Path

import pytest

from corpus.errors import DataError
from corpus.private_folders import make_private_folder


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
    monkeypatch.setattr("corpus.private_folders.os.geteuid", lambda: other)
    with pytest.raises(DataError, match="belongs to another user"):
        make_private_folder(tmp_path / "theirs", "wait")
