"""The folder of a run's work: which run uses it, and which errors are about the folder."""

from pathlib import Path
from typing import Any

import pytest

from common.errors import DataError, FinalError
from jobs.work_folder import work_folder

NAME = "0123456789ab"


@pytest.mark.parametrize(
    ("error", "finished", "stays"),
    [
        (DataError, True, True),
        (DataError, False, False),
        (FinalError, True, False),
        (FileNotFoundError, True, False),  # it is not taken for one of the folder
    ],
)
def test_finished_steps_stay_where_a_failed_run_may_go_on(
    tmp_path: Path, error: type[Exception], finished: bool, stays: bool
) -> None:
    home = tmp_path / "out"
    kept = "; the finished steps remain in " * stays
    with pytest.raises(error, match=f"the reason{kept}"), work_folder(home, NAME, lambda _: finished):
        raise error("the reason")
    assert (home / f".shoal-work-{NAME}").exists() == home.exists() == stays


def test_folders_of_runs_that_ended_go_and_those_of_others_stay(tmp_path: Path) -> None:
    theirs = [tmp_path / ".work-in-progress" / "thesis", tmp_path / ".shoal-work-mine" / "notes"]
    left = [tmp_path / ".shoal-work-0123456789ac" / "x", tmp_path / f".shoal-gone-{'0' * 32}" / "x"]
    for path in (*theirs, *left):
        path.parent.mkdir(parents=True)
        path.touch()
    with work_folder(tmp_path, NAME, bool) as running, work_folder(tmp_path, "b" * 12, bool) as other:
        assert running.exists()
        assert other.exists()
    assert all(path.exists() for path in theirs)
    assert not any(path.parent.exists() for path in left)


def test_a_folder_is_used_by_nobody_but_its_user_and_goes_with_a_private_home(tmp_path: Path) -> None:
    home = tmp_path / "shoal-1000-0123456789ab"
    with work_folder(home, NAME, bool, private=True) as folder:
        assert {each.stat().st_mode & 0o777 for each in (home, folder)} == {0o700}
        assert folder.with_name(f"{folder.name}.lock").stat().st_mode & 0o777 == 0o600
        assert folder.parent == home
    assert not home.exists()


def with_mode(folder: Path, mode: int) -> None:
    folder.mkdir()
    folder.chmod(mode)


@pytest.mark.parametrize(
    ("place", "make", "wrong"),
    [
        ("", lambda path, _: path.write_text("mine"), "is a file; choose another"),
        ("", Path.symlink_to, r"is a link, .* TMPDIR"),
        (f".shoal-work-{NAME}", Path.symlink_to, r"is a link, .* --output"),
        (f".shoal-work-{NAME}", lambda path, _: with_mode(path, 0o777), "can be written to by other users"),
        (f".shoal-work-{NAME}.lock", lambda path, to: path.symlink_to(to / "made"), r"cannot write to .*--output"),
    ],
)
def test_what_others_put_in_its_place_is_refused_and_stays(tmp_path: Path, place: str, make: Any, wrong: str) -> None:
    home, precious = tmp_path / "out", tmp_path / "elsewhere" / "precious"
    precious.mkdir(parents=True)
    if place:
        home.mkdir(0o700)
    make(home / place, precious.parent)
    with pytest.raises(DataError, match=wrong), work_folder(home, NAME, bool, private=home.is_symlink()):
        pass
    assert list(precious.parent.iterdir()) == [precious]
    assert (home / place).exists() != place.endswith(".lock")
