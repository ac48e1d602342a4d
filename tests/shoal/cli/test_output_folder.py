"""A second command that writes to the same output folder is refused and changes nothing."""

import errno
import fcntl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import Mock

import pytest

from common.errors import ShoalError
from shoal.cli.output_folder import sole_writer
from tests.shoal.cli.command import shoal_here
from trainer.output.run_files import locked_output

HOLDER = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[-1], os.O_RDONLY), fcntl.LOCK_EX); print(); input()"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Lock the folder by another process."""
    folder.mkdir(exist_ok=True)
    line = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.kill()


@pytest.mark.parametrize(
    "command",
    [
        "train --local --data {data}",
        "embed --local --input {data}",
        "preprocess --local --input {data}",
        "experiment models --input {data}",
        "export --model {model}",
        "demo",
    ],
)
def test_the_second_command_is_refused_and_changes_nothing(command, model, tmp_path, messages) -> None:
    (tmp_path / "data").write_text("a fine lamp\n")
    output = tmp_path / "out"
    with held(output):
        done = shoal_here(*command.format(data=tmp_path / "data", model=model).split(), "--output", output)
    assert (done.returncode, list(output.iterdir())) == (1, [])
    messages.check(done.stderr.rstrip())


def test_the_ranks_of_a_killed_command_keep_the_folder_locked(tmp_path, messages) -> None:
    with ExitStack() as rank:
        with sole_writer(tmp_path):
            rank.enter_context(locked_output(tmp_path))
        with messages.raises(ShoalError), sole_writer(tmp_path):
            pass
    with sole_writer(tmp_path):
        pass


def test_a_folder_created_only_for_the_lock_is_removed(tmp_path) -> None:
    with sole_writer(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b").is_dir()
    assert list(tmp_path.iterdir()) == []
    with sole_writer(tmp_path / "a" / "b"):
        (tmp_path / "a" / "file").touch()
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["file"]


def test_a_file_system_without_folder_locks_causes_a_warning(tmp_path, monkeypatch, capsys, messages) -> None:
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(errno.EBADF, "Bad file descriptor")))
    with sole_writer(tmp_path):
        pass
    messages.check(capsys.readouterr().err.rstrip())


def test_an_uncreatable_folder_raises_no_error_here(tmp_path) -> None:
    (tmp_path / "file").touch()
    with sole_writer(tmp_path / "file"), sole_writer(tmp_path / "file" / "below"):
        pass
    assert (tmp_path / "file").is_file()
