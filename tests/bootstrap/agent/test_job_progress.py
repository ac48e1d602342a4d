"""How far a job is, by what Hadoop's client prints."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootstrap.agent import job_progress
from bootstrap.agent.documents import MOST_ERROR
from bootstrap.agent.job_progress import ClientOutput, JobProgress

COMMAND = ["hadoop-streaming", "-D", "mapreduce.job.name=shoal 0123456789ab: encode", "-D", "mapreduce.job.reduces=5"]
TASK_FAILED = """\
26/01/02 03:04:05 INFO mapreduce.Job: Task Id : attempt_1_0001_m_000003_0, Status : FAILED
Error: java.lang.RuntimeException: PipeMapRed.waitOutputThreads(): subprocess failed with code 1
"""


@pytest.fixture
def printed(tmp_path: Path) -> Iterator[tuple[ClientOutput, Callable[[str], None]]]:
    with (tmp_path / "stderr").open("w+b", buffering=0) as file:
        output = ClientOutput(file.fileno(), "0a1b2c3d", COMMAND)

        def add(text: str) -> None:
            with (tmp_path / "stderr").open("a") as client:
                client.write(text)
            output.pass_on()

        yield output, add


def test_the_tasks_that_are_done_are_those_of_the_shares_that_hadoop_tells(
    printed: tuple[ClientOutput, Callable[[str], None]], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    output, add = printed
    assert (output.progress.name, output.progress.total, output.progress.done) == (
        COMMAND[2].partition("=")[2],
        None,
        0,
    )
    add("26/01/02 INFO mapreduce.JobSubmitter: number of splits:8\n26/01/02 INFO mapreduce.Job:  map 50% red")
    assert (output.progress.total, output.progress.done) == (13, 0)
    add("uce 0%\n")
    assert output.progress.done == 4
    add(" map 100% reduce 60%\n")
    assert output.progress.done == 11
    sys.stderr.flush()
    assert capsysbinary.readouterr().err.endswith(b"map 50% reduce 0%\n map 100% reduce 60%\n")


@pytest.mark.parametrize("status", [0, 1])
def test_of_a_job_that_has_failed_alone_the_lines_of_its_task_and_the_last_ones_are_told(
    printed: tuple[ClientOutput, Callable[[str], None]], status: int
) -> None:
    output, add = printed
    add(TASK_FAILED + "a counter=1\n" * 50 + "Streaming Command \x1b[31mFailed!")
    output.end(status)
    lines = output.progress.failed.splitlines()
    assert (lines[:2], lines[-1:]) == (
        (TASK_FAILED.splitlines(), ["Streaming Command \x1b[31mFailed!"]) if status else ([], [])
    )
    assert len(lines) < 20


@given(st.lists(st.text(max_size=3_000), max_size=5), st.integers(0, 2))
def test_whatever_a_client_prints_is_told_as_a_document(tmp_path_factory, texts: list[str], code: int) -> None:
    with (tmp_path_factory.mktemp("client") / "stderr").open("w+b", buffering=0) as file:
        file.write("\n".join(["number of splits:3", " map 999% reduce 100%", *texts]).encode("utf-8", "replace"))
        output = ClientOutput(file.fileno(), "0a1b2c3d", COMMAND)
        output.end(code)
    assert JobProgress.from_json(output.progress.to_json()) == output.progress
    assert len(output.progress.failed) <= MOST_ERROR
    assert 0 <= output.progress.done <= (output.progress.total or 0)


def test_a_job_of_spark_is_as_far_as_its_driver_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([None, (3, 16), (-1, 16), (17, 16)])
    ports: list[int] = []

    def tasks(port: int) -> tuple[int, int] | None:
        ports.append(port)
        return next(answers)

    monkeypatch.setattr(job_progress, "driver_tasks", tasks)
    name = COMMAND[2].partition("=")[2]
    with (tmp_path / "stderr").open("w+b", buffering=0) as file:
        output = ClientOutput(file.fileno(), "0a1b2c3d", ["spark-submit", "--name", name, "harness.py"])
        output.ask_driver()
        assert (output.progress.name, output.progress.total, ports) == (name, None, [])
        file.write(b"26/01/02 03:04:05 INFO Utils: Successfully started service 'SparkUI' on port 4041.\n")
        output.pass_on()
        for expected in ((None, 0), (16, 3), (16, 3), (16, 3)):  # what cannot be does not count
            output.ask_driver()
            assert (output.progress.total, output.progress.done) == expected
    assert set(ports) == {4041}


def test_yarn_is_asked_for_the_log_of_the_task_that_failed_last(
    printed: tuple[ClientOutput, Callable[[str], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_progress, "last_lines", lambda attempt: f"{'x' * 9_000}\nof {attempt}")
    output, add = printed
    output.ask_task()
    assert output.progress.written == ""
    add(TASK_FAILED + TASK_FAILED.replace("3_0", "3_1"))
    output.ask_task()
    assert output.progress.written.endswith("x\nof attempt_1_0001_m_000003_1")
    assert JobProgress.from_json(output.progress.to_json()) == output.progress
