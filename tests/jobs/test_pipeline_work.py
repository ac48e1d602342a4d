"""What remains of a run's work: nothing when it ends, and all finished steps when it is killed."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from common.errors import DataError
from tests.jobs.piles import PLAIN, Stages, assert_equals_oracle, preprocess
from tests.reviews import snap_lines
from tests.waiting import until


def test_too_little_space_is_found_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reviews.json").write_bytes(PLAIN)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=100))
    with pytest.raises(DataError, match=r"the work needs about .* MB in .*out, and 0 MB are free"):
        preprocess([tmp_path / "reviews.json"], tmp_path / "out")


def is_in_session(process: psutil.Process, leader: int) -> bool:
    try:
        return os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, psutil.NoSuchProcess):
        return False


def started(path: Path, output: Path) -> "subprocess.Popen[bytes]":
    """A run in a process of its own, with tasks that will take a while."""
    letters = str.maketrans("0123456789", "abcdefghij")
    texts = (f"lamp {str(n).translate(letters)} {'bright ' * 50}" for n in range(3_000))
    path.write_bytes(snap_lines(*((text, 1 + len(text) % 5) for text in texts)) * 40)
    code = (
        "import sys; from jobs.pipeline import preprocess_locally; from corpus.reading.sources import Inputs;"
        "preprocess_locally(Inputs(files=(sys.argv[1],)), sys.argv[2], runner='local')"
    )
    temporary = path.with_name("temporary")
    temporary.mkdir()
    running = subprocess.Popen(
        [sys.executable, "-c", code, path, output],
        env={**os.environ, "TMPDIR": str(temporary)},
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    until(lambda: any(is_task(each, running.pid) for each in psutil.Process(running.pid).children(recursive=True)))
    return running


def is_task(process: psutil.Process, run: int) -> bool:
    """Whether it is a fork of a run's task server, which is the run's own child."""
    try:
        return process.ppid() != run and any("task_server" in word for word in process.cmdline())
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_processes_and_if_it_can_no_files(tmp_path: Path, sent: signal.Signals) -> None:
    running = started(tmp_path / "reviews.json", tmp_path / "out")
    os.kill(running.pid, sent)
    assert running.wait() != 0
    assert (tmp_path / "out").exists() == (sent == signal.SIGKILL)
    until(lambda: not any(is_in_session(process, running.pid) for process in psutil.process_iter()))
    assert not list((tmp_path / "temporary").iterdir())


def run_and_die(path: Path, output: Path, stage: str) -> None:
    """Begin a run in another process, which is killed when it comes to a stage."""
    child = os.fork()
    if not child:
        preprocess([path], output, progress=Stages(stage))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


ALL_STEPS = ["deduplicate", "count words", "choose vocabulary", "encode", "merge"]


@pytest.mark.parametrize(("stage", "done"), [("deduplicate", 0), ("choose vocabulary", 2), ("merge", 4)])
def test_a_killed_run_is_gone_on_with(tmp_path: Path, stage: str, done: int) -> None:
    path, output = tmp_path / "reviews.json", tmp_path / "out"
    path.write_bytes(PLAIN)
    run_and_die(path, output, stage)
    stages = Stages()
    preprocess([path], output, progress=stages, max_malformed=0.2)
    assert stages.seen == ALL_STEPS[done:]
    assert_equals_oracle(output, [PLAIN])
    assert sorted(found.name for found in output.iterdir()) == ["counts.json", "dataset.h5"]


def test_what_a_run_on_other_input_left_is_cleared(tmp_path: Path) -> None:
    path, output = tmp_path / "reviews.json", tmp_path / "out"
    path.write_bytes(PLAIN)
    run_and_die(path, output, "merge")
    path.write_bytes(PLAIN + PLAIN)
    stages = Stages()
    preprocess([path], output, progress=stages)
    assert stages.seen == ALL_STEPS
    assert sorted(found.name for found in output.iterdir()) == ["counts.json", "dataset.h5"]


def test_fewer_tasks_than_in_the_killed_run_read_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, output = tmp_path / "reviews.json", tmp_path / "out"
    content = PLAIN * 3_000 + snap_lines(("the last lamp", 2))
    path.write_bytes(content)
    with monkeypatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda _: range(5))
        run_and_die(path, output, "deduplicate")
    assert len(list(output.glob(".shoal-work-*/to-read/*"))) > 2
    preprocess([path], output, runner="inline")
    assert_equals_oracle(output, [content])


def test_too_many_malformed_lines_do_not_cost_the_work_that_counted_them(tmp_path: Path) -> None:
    path = tmp_path / "noise.json"
    path.write_bytes(PLAIN * 2_000 + b"{\n" * 4_000)
    with pytest.raises(DataError, match=r"4000 of 44000 lines .* line 40001 of .*; the finished steps remain in"):
        preprocess([path], tmp_path / "out")
    stages = Stages()
    merged = preprocess([path], tmp_path / "out", progress=stages, max_malformed=0.2)
    assert stages.seen == ["choose vocabulary", "encode", "merge"]
    assert merged.counts["malformed"] == 4_000
    assert sorted(found.name for found in (tmp_path / "out").iterdir()) == ["counts.json", "dataset.h5"]


def test_a_file_that_changes_meanwhile_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "reviews.json"
    path.write_bytes(PLAIN)

    class Growing(Stages):
        def stage(self, name: str, _: int) -> None:
            if name == "deduplicate":
                path.write_bytes(PLAIN + PLAIN)

    with pytest.raises(DataError, match=r"reviews\.json was changed while it was read"):
        preprocess([path], tmp_path / "out", progress=Growing())
    assert not (tmp_path / "out").exists()


def test_a_dataset_that_was_deleted_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, output = tmp_path / "reviews.json", tmp_path / "out"
    path.write_bytes(PLAIN)

    with monkeypatch.context() as patch:
        patch.setattr("jobs.pipeline.read_merge_result", lambda _: os.kill(os.getpid(), signal.SIGKILL))
        run_and_die(path, output, "")
    (output / "dataset.h5").unlink()
    preprocess([path], output)
    assert_equals_oracle(output, [PLAIN])


def test_two_runs_on_the_same_input_do_not_meet(tmp_path: Path) -> None:
    path, output = tmp_path / "reviews.json", tmp_path / "out"
    path.write_bytes(PLAIN)

    class Second(Stages):
        def stage(self, name: str, _: int) -> None:
            if name == "merge":
                with pytest.raises(DataError, match="another run processes the same input"):
                    preprocess([path], output)

    preprocess([path], output, progress=Second())
    assert_equals_oracle(output, [PLAIN])
