"""A task server runs scripts as forks of one process, each with its own streams, folder and environment."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import BinaryIO

import pytest

from jobs.task_server import TaskServer
from tests.waiting import until


@pytest.fixture(scope="module", autouse=True)
def warm_ups(tmp_path_factory):
    """Provide warm-ups that take less time than `jobs.warm_up`."""
    folder = tmp_path_factory.mktemp("modules")
    for name, body in {"short": "pass", "failing": "1 / 0", "endless": "import time; time.sleep(9999)"}.items():
        (folder / f"{name}.py").write_text(f"def warm_up(_):\n    {body}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ["PYTHONPATH"]]))
        yield


@pytest.fixture(scope="module")
def server(warm_ups, tmp_path_factory):
    with TaskServer("short", tmp_path_factory.mktemp("server")) as started:
        yield started


def run(server: TaskServer, folder: Path, script: str, *arguments: str, stdin: bytes = b"") -> bool:
    folder.mkdir(exist_ok=True)
    (folder / "task.py").write_text(script)
    (folder / "stdin").write_bytes(stdin)
    files: list[BinaryIO] = [(folder / "stdin").open("rb"), *((folder / f"std{n}").open("wb") for n in ("out", "err"))]
    try:
        return server.run(
            ["task.py", *arguments],
            [each.fileno() for each in files],
            folder=str(folder),
            environment={"NAME": "value"},
        )
    finally:
        for each in files:
            each.close()


ECHO = """
import os, sys, subprocess
if __name__ == "__main__":
    print(sys.argv, os.getcwd(), dict(os.environ)["NAME"], len(os.environ), sys.stdin.buffer.read())
    print(subprocess.run(["false"]).returncode, file=sys.stderr)
"""


def test_concurrent_tasks_have_separate_streams_arguments_folders_and_environments(server, tmp_path) -> None:
    names = [f"{number}" for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        ended = threads.map(lambda name: run(server, tmp_path / name, ECHO, name, stdin=name.encode()), names)
        assert list(ended) == [True] * 8
    for name in names:
        folder = tmp_path / name
        assert (folder / "stdout").read_text() == f"['task.py', '{name}'] {folder} value 1 {name.encode()!r}\n"
        assert (folder / "stderr").read_text() == "1\n"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import sys; sys.exit('no')", "no\n"),
        ("1 / 0", "ZeroDivisionError: division by zero\n"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", ""),
    ],
    ids=["a sentence", "a traceback", "a signal"],
)
def test_a_failed_task_is_distinguished_from_a_finished_one(server, tmp_path, script, said) -> None:
    assert not run(server, tmp_path, script)
    assert (tmp_path / "stderr").read_text().endswith(said)
    assert run(server, tmp_path, "print('and the next one works')")


def test_the_end_stops_all_tasks_and_starts_no_others(tmp_path) -> None:
    with TaskServer("short", tmp_path) as server, ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(run, server, tmp_path, "import time; print('started', flush=True); time.sleep(999)")
        until(lambda: (tmp_path / "stdout").exists() and (tmp_path / "stdout").read_text())
        server.end()
        assert not waiting.result()
        assert not run(server, tmp_path, "")


def test_a_failed_warm_up_does_not_prevent_tasks(tmp_path) -> None:
    with TaskServer("failing", tmp_path) as server:
        assert run(server, tmp_path, "print('done')")


def test_the_end_does_not_wait_for_unread_requests(tmp_path) -> None:
    (tmp_path / "task.py").write_text("")
    server = TaskServer("endless", tmp_path)
    large = {"LARGE": "x" * 100_000}  # a few requests exceed the buffer of the socket
    with ThreadPoolExecutor(9) as threads:
        ask = partial(threads.submit, server.run, ["task.py"], [0, 1, 2])
        waiting = [ask(folder=str(tmp_path), environment=large) for _ in range(9)]
        until(lambda: list(tmp_path.glob("warm-up-*")))
        server.end()
        assert not any(each.result() for each in waiting)
