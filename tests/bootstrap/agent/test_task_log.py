"""The last lines of a task, by what `mapred job -logs` prints: as Hadoop 3.3 does it."""

import os
import sys
from pathlib import Path

import pytest

from bootstrap.agent import job_progress
from bootstrap.agent.job_progress import last_lines

ATTEMPT = "attempt_1700000000000_0012_m_000003_2"
HEAD = """\
Container: container_1700000000000_0012_01_000005 on ip-10-0-0-7.ec2.internal_8041
LogAggregationType: AGGREGATED
==================================================================================
"""


def section(kind: str, content: str) -> str:
    """A file of a container's log."""
    end = f"End of LogType:{kind}"
    changed = "LogLastModifiedTime:Tue Nov 14 22:13:20 +0000 2023\n"
    length = f"LogLength:{len(content.encode())}\n"
    return f"{HEAD}LogType:{kind}\n{changed}{length}LogContents:\n{content}\n{end}\n{'*' * (len(end) + 50)}\n\n"


LATE = f"#!{sys.executable}\nimport time\ntime.sleep(100)\nprint({section('stderr', 'late')!r})\n"


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_progress, "_PAUSE_SECONDS", 0.05)


@pytest.fixture
def mapred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program, which is to be written."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    (tmp_path / "mapred").touch(mode=0o755)
    return tmp_path / "mapred"


def printing(mapred: Path, *sections: str) -> None:
    (mapred.parent / "printed").write_text("".join(sections))
    asked = f"job -logs {ATTEMPT.replace('attempt', 'job', 1).partition('_m_')[0]} {ATTEMPT}"
    mapred.write_text(
        f'#!/bin/sh\n[ "$*" = "{asked}" ] || exit 1\necho >>"{mapred.parent}/asked"\ncat "{mapred.parent}/printed"\n'
    )


def test_the_last_lines_of_standard_error_alone_are_told(mapred: Path) -> None:
    written = "".join(f"line {number}\n\n" for number in range(50)) + "Value\x1b[31mError: no number"
    printing(mapred, section("prelaunch.out", "Launching\n"), section("stderr", written), section("syslog", "INFO\n"))
    lines = last_lines(ATTEMPT).splitlines()
    assert lines[-3:] == ["line 48", "line 49", "Value\x1b[31mError: no number"]
    assert len(lines) == 12


def test_a_task_that_wrote_nothing_is_not_waited_for(mapred: Path) -> None:
    # Hadoop prints no head for an empty file.
    printing(mapred, "End of LogType:stderr\n*****\n\n", section("syslog", "INFO\n"))
    assert last_lines(ATTEMPT) == ""
    assert (mapred.parent / "asked").read_text() == "\n"  # once


def test_a_log_that_yarn_has_not_collected_yet_is_asked_for_again(mapred: Path) -> None:
    printing(mapred, section("stderr", "its words\n"))
    mapred.write_text(
        mapred.read_text().replace(
            "cat", f'mkdir "{mapred.parent}/collected" && echo "Log aggregation has not completed." && exit 1\ncat'
        )
    )
    assert last_lines(ATTEMPT) == "its words"


def test_a_long_line_and_foreign_bytes_take_little_memory(mapred: Path) -> None:
    printing(mapred, section("stderr", "x" * 3_000_000 + "\n\x00\udcff".encode("utf-8", "ignore").decode()))
    told = last_lines(ATTEMPT)
    assert len(told) < 100_000
    assert told.endswith("x\n\x00")


@pytest.mark.parametrize("script", [LATE, "#!/bin/sh\nexit 1\n", "no program"])
def test_a_log_that_does_not_come_in_time_is_not_told(
    mapred: Path, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_progress, "_LOG_SECONDS", 0.5)
    mapred.write_text(script)
    assert last_lines(ATTEMPT) == ""
