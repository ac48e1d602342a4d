"""A run leaves no intermediate files; those of a killed run are removed by the next run."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from common.errors import DataError
from tests.jobs.piles import PLAIN, Stages, assert_equals_oracle, preprocess
from tests.waiting import until


def test_a_lack_of_disk_space_is_reported_before_the_work(tmp_path, monkeypatch, messages) -> None:
    (tmp_path / "reviews.json").write_bytes(PLAIN)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=100))
    with messages.raises(DataError):
        preprocess([tmp_path / "reviews.json"], tmp_path / "out")


def test_an_interrupted_run_leaves_no_files(tmp_path: Path) -> None:
    path, output = tmp_path / "reviews.json", tmp_path / "out"
    path.write_bytes(PLAIN * 20_000)
    code = (
        "import sys; from jobs.local import preprocess_locally; from corpus.reading.sources import Inputs;"
        "preprocess_locally(Inputs(files=(sys.argv[1],)), sys.argv[2])"
    )
    run = subprocess.Popen([sys.executable, "-c", code, path, output], stderr=subprocess.DEVNULL)
    until(lambda: list(output.glob(".shoal-work-*/texts")))
    run.send_signal(signal.SIGINT)
    assert run.wait() != 0
    assert not output.exists()


def test_files_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    path, output = tmp_path / "reviews.json", tmp_path / "out"
    path.write_bytes(PLAIN)
    script = (  # in another process, not a fork, because this process has threads
        "import sys; from pathlib import Path; from tests.jobs.piles import Stages, preprocess; "
        "preprocess([Path(sys.argv[1])], Path(sys.argv[2]), to=Stages('encode'))"
    )
    done = subprocess.run([sys.executable, "-c", script, path, output], check=False)
    assert done.returncode == -signal.SIGKILL
    assert list(output.glob(".shoal-work-*/rows/*"))
    preprocess([path], output)
    assert_equals_oracle(output, [PLAIN])
    assert sorted(found.name for found in output.iterdir()) == ["counts.json", "dataset.h5"]


def test_an_unwritable_folder_is_reported(tmp_path: Path, messages) -> None:
    (tmp_path / "reviews.json").write_bytes(PLAIN)
    with messages.raises(DataError):
        preprocess([tmp_path / "reviews.json"], tmp_path / "reviews.json")


@pytest.mark.parametrize("stage", ["deduplicate", "encode"])
def test_a_removed_folder_is_the_reason_for_a_failure(tmp_path: Path, stage: str, messages) -> None:
    output = tmp_path / "out"
    (tmp_path / "reviews.json").write_bytes(PLAIN)

    class Removing(Stages):
        def stage(self, name: str, total: int = 0, unit: str | None = None) -> None:
            if name == stage:
                shutil.rmtree(output)

    with messages.raises(DataError) as refused:
        preprocess([tmp_path / "reviews.json"], output, to=Removing())
    assert str(output) in str(refused.value)


def test_an_error_of_the_disk_is_reported(tmp_path: Path, messages) -> None:
    (tmp_path / "reviews.json").write_bytes(PLAIN)

    class Failing(Stages):
        def stage(self, name: str, total: int = 0, unit: str | None = None) -> None:
            raise OSError(errno.EIO, f"{os.strerror(errno.EIO)} during {name}")

    with messages.raises(DataError):
        preprocess([tmp_path / "reviews.json"], tmp_path / "out", to=Failing())
    assert not (tmp_path / "out").exists()


def test_a_file_that_changes_during_the_work_is_refused(tmp_path: Path, messages) -> None:
    path = tmp_path / "reviews.json"
    path.write_bytes(PLAIN)

    class Growing(Stages):
        def stage(self, name: str, total: int = 0, unit: str | None = None) -> None:
            if name == "deduplicate":
                path.write_bytes(PLAIN + PLAIN)

    with messages.raises(DataError):
        preprocess([path], tmp_path / "out", to=Growing())
    assert not (tmp_path / "out").exists()
