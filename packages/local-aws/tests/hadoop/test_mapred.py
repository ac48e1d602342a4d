"""`mapred job -logs` on a node, as Hadoop answers it."""

from pathlib import Path

import pytest
from shoal_local_aws.hadoop import yarn

JOB = "job_1700000000000_0012"
ATTEMPT = "attempt_1700000000000_0012_m_000003_2"


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NODE_ROOT", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["mapred", "job", "-logs", JOB, ATTEMPT])
    log = tmp_path / "var" / "log" / "hadoop-yarn" / "containers" / JOB / ATTEMPT / "stderr"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"its \xff words\n")
    return tmp_path


@pytest.mark.usefixtures("node")
def test_the_log_of_a_task_is_printed_as_yarn_keeps_it(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert yarn.main() == 0
    lines = capfdbinary.readouterr().out.split(b"\n")
    assert (lines[1], lines[3]) == (b"LogAggregationType: AGGREGATED", b"LogType:stderr")
    assert lines[5:10] == [b"LogLength:12", b"LogContents:", b"its \xff words", b"", b"End of LogType:stderr"]


def test_a_job_that_runs_has_no_log_yet(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    running = node / "mnt" / "yarn" / "applications" / JOB.replace("job", "application")
    running.parent.mkdir(parents=True)
    running.touch()
    assert yarn.main() == 255
    assert capsys.readouterr().out == "Cannot get log path for a in-progress job\n"


def test_a_task_that_is_not_known_has_no_log(
    node: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["mapred", "job", "-logs", JOB, f"{ATTEMPT}9"])
    assert yarn.main() == 255
    assert capsys.readouterr().out == f"Unable to get log information for task: {ATTEMPT}9\n"
