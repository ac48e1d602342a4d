"""Private folders are safe from other users. Temporary folders are removed after their process."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from common.errors import DataError
from common.private_folders import make_private_folder, temporary_folder


def test_a_private_folder_is_created_once_and_reused(tmp_path: Path) -> None:
    for _ in range(2):
        assert make_private_folder(tmp_path / "mine", "") == tmp_path / "mine"
        assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o700
    (tmp_path / "mine").chmod(0o755)  # other users are allowed to read
    assert make_private_folder(tmp_path / "mine", "") == tmp_path / "mine"


def with_mode(folder: Path, mode: int) -> None:
    folder.mkdir()
    folder.chmod(mode)


UNSAFE: dict[str, Callable[[Path], None]] = {
    **{f"mode {mode:o}": lambda at, mode=mode: with_mode(at, mode) for mode in (0o770, 0o702, 0o1777)},
    "link": lambda at: at.symlink_to(at.parent),
    "broken link": lambda at: at.symlink_to(at.parent / "nowhere"),
    "file": lambda at: at.write_text(""),
}


@pytest.mark.parametrize("kind", UNSAFE)
def test_an_unsafe_folder_is_refused(tmp_path, kind, messages) -> None:
    UNSAFE[kind](tmp_path / "there")
    with messages.raises(DataError):
        make_private_folder(tmp_path / "there", "wait")


def test_a_folder_of_another_user_is_refused(tmp_path, monkeypatch, messages) -> None:
    (tmp_path / "theirs").mkdir(0o700)
    other = os.geteuid() + 1
    monkeypatch.setattr("common.private_folders.os.geteuid", lambda: other)
    with messages.raises(DataError):
        make_private_folder(tmp_path / "theirs", "wait")


PROCESS = """
import os, signal, sys
from pathlib import Path
from common.private_folders import temporary_folder
with temporary_folder(".texts-", Path(sys.argv[1])) as folder:
    (folder / "many").write_text("texts")
    print(folder, flush=True)
    sys.stdin.read()
"""


@contextmanager
def living(home: Path) -> Iterator[tuple["subprocess.Popen[str]", Path]]:
    """Yield a running process that has a temporary folder in `home`, and the path of this folder."""
    line = [sys.executable, "-c", PROCESS, str(home)]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process, Path(process.stdout.readline().rstrip())


def test_a_temporary_folder_is_removed_with_its_content_and_lock(tmp_path: Path) -> None:
    def stopped() -> None:
        with temporary_folder(".texts-", tmp_path) as folder:
            (folder / "some").write_text("")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert list(tmp_path.iterdir()) == []


def test_only_folders_of_dead_processes_are_removed(tmp_path: Path) -> None:
    with living(tmp_path) as (_, used), temporary_folder(".texts-", tmp_path) as own:
        left = []
        for _ in range(2):
            with living(tmp_path) as (process, folder):
                process.kill()
            left.append(folder)
        assert left[1].exists()
        with temporary_folder(".texts-", tmp_path):
            assert [folder.exists() for folder in left] == [False, False]
        assert (used / "many").read_text() == "texts"
        assert own.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_partly_removed_leftover_is_removed_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with living(tmp_path) as (process, left):
        process.kill()
    with monkeypatch.context() as patch:
        patch.setattr("common.private_folders.shutil.rmtree", lambda *_, **__: None)  # a child still writes there
        with temporary_folder(".texts-", tmp_path):
            assert (left / "many").exists()
    with temporary_folder(".texts-", tmp_path):
        assert not left.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("module", "call"),
    [
        ("corpus.reading.storage", "writable('s3://bucket/object')"),
        ("trainer.classification.model_folder", "_local_folder('s3://bucket/model')"),
    ],
)
def test_leftovers_of_a_killed_command_are_removed_by_the_next(tmp_path: Path, module: str, call: str) -> None:
    line = f"""
import os, signal, sys
from corpus.reading import s3
s3.client = lambda: None
s3.download = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
from {module} import {call.partition("(")[0]}
for _ in range(2):
    child = os.fork()
    if not child:
        with {call}:
            os.kill(os.getpid(), signal.SIGKILL)
    print(os.WTERMSIG(os.waitpid(child, 0)[1]), sum(each.is_dir() for each in os.scandir({str(tmp_path)!r})))
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", line], env=environment, check=True, capture_output=True, text=True)
    assert done.stdout == "9 1\n9 1\n"


def test_a_folder_without_a_valid_lock_is_kept(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / ".texts-link").symlink_to(tmp_path / "precious")
    (tmp_path / ".texts-link.lock").write_text("")
    (tmp_path / ".texts-none").mkdir()  # a folder without a lock file
    (tmp_path / ".texts-odd").mkdir()
    (tmp_path / ".texts-odd.lock").symlink_to(tmp_path / "made")
    with temporary_folder(".texts-", tmp_path):
        pass
    there = {path.name for path in tmp_path.iterdir()}
    assert there >= {"precious", ".texts-link", ".texts-none", ".texts-odd"}
    assert "made" not in there


NOBODY = 65_534


@contextmanager
def open_folder() -> Iterator[Path]:
    """Yield a folder that all users may write to."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def as_another(check: Callable[[], bool]) -> bool:
    """Return the result of `check` in a process of another user, if the tests run as root."""
    child = os.fork()
    if not child:
        status = 2
        try:
            if os.geteuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            status = 0 if check() else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_temporary_folder_of_another_user_is_kept() -> None:
    def make_beside(home: Path, theirs: Path) -> bool:
        with temporary_folder(".texts-", home) as own:
            return own.exists() and theirs.exists()

    with open_folder() as home, temporary_folder(".texts-", home) as theirs:
        assert as_another(lambda: make_beside(home, theirs))
        assert theirs.exists()
