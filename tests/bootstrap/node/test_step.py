"""Exit statuses of a step that runs a command, and what it does if it is cancelled."""

import signal
import subprocess
import sys
from unittest.mock import Mock, call

import pytest

from bootstrap.node import cancellation, step

WORDS = ("data", "0123456789ab", "0a1b2c3d")


@pytest.mark.parametrize(("code", "status"), [(0, 0), (3, 3), (-signal.SIGKILL, 137), (-signal.SIGTERM, 143)])
def test_a_step_has_the_status_that_a_shell_would_give_to_its_command(code, status):
    assert step._wait(Mock(wait=Mock(return_value=code)), *WORDS) == status


def test_a_step_that_emr_ends_ends_its_work_first(monkeypatch):
    command, ended = Mock(wait=lambda _: signal.raise_signal(signal.SIGTERM)), Mock()
    monkeypatch.setattr(sys, "argv", ["step", *WORDS, "hadoop", "jar"])
    monkeypatch.setattr(subprocess, "Popen", lambda words: command if words[-2:] == ["hadoop", "jar"] else None)
    monkeypatch.setattr(cancellation, "end_work", ended)
    with pytest.raises(SystemExit) as end:
        step.main()
    assert end.value.code == 143
    ended.assert_called_once_with(command, "0123456789ab")


def test_a_cancelled_step_ends_its_work_and_then_waits_for_emr(monkeypatch):
    command = Mock(wait=Mock(side_effect=subprocess.TimeoutExpired("hadoop", 1)))
    launch = Mock(is_cancelled=Mock(side_effect=[False, True]))
    monkeypatch.setattr(cancellation, "StepWork", lambda *words: launch if words == WORDS else None)
    monkeypatch.setattr(step, "time", Mock(sleep=launch.sleep))
    assert step._wait(command, *WORDS) == 1
    assert launch.mock_calls == [call.is_cancelled(), call.is_cancelled(), call.end(command), call.sleep(300)]
