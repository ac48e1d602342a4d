"""The folder of a run's work: which run uses it, and which errors are about the folder."""

from pathlib import Path

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


def test_a_file_where_the_folder_should_be_is_reported(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(DataError, match="is a file; choose another"), work_folder(tmp_path / "out", NAME, bool):
        pass
    assert (tmp_path / "out").read_text() == "mine"


def test_a_folder_where_others_may_write_is_used_by_nobody_but_its_user(tmp_path: Path) -> None:
    home = tmp_path / "shoal-1000-0123456789ab"
    with work_folder(home, NAME, bool, private=True) as folder:
        assert home.stat().st_mode & 0o777 == 0o700
        assert folder.parent == home
    assert not home.exists()
    (tmp_path / "elsewhere").mkdir()
    home.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match=r"is a link, .* TMPDIR"), work_folder(home, NAME, bool, private=True):
        pass
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_link_where_the_folder_should_be_leads_to_no_removal(tmp_path: Path) -> None:
    precious = tmp_path / "precious" / "tasks"
    precious.mkdir(parents=True)
    (tmp_path / f".shoal-work-{NAME}").symlink_to(precious.parent)
    with pytest.raises(DataError, match=r"is a link, .* --output"), work_folder(tmp_path, NAME, bool):
        pass
    assert precious.exists()


def test_a_folder_of_the_work_that_others_may_write_to_is_not_taken(tmp_path: Path) -> None:
    with work_folder(tmp_path, NAME, bool) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert folder.with_name(f"{folder.name}.lock").stat().st_mode & 0o777 == 0o600
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(DataError, match="can be written to by other users"), work_folder(tmp_path, NAME, bool):
        pass


def test_a_link_where_the_lock_should_be_makes_no_file(tmp_path: Path) -> None:
    home = tmp_path / "out"
    home.mkdir()
    (home / f".shoal-work-{NAME}.lock").symlink_to(tmp_path / "made")
    with pytest.raises(DataError, match=r"cannot write to .*; choose another --output"), work_folder(home, NAME, bool):
        pass
    assert not (tmp_path / "made").exists()
