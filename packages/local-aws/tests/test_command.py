import signal
import subprocess
from unittest.mock import Mock

import pytest
from shoal_local_aws import command
from shoal_local_aws.emulator_error import EmulatorError


@pytest.mark.parametrize(("script", "status"), [("exit 7", 7), ("kill -TERM $$", 128 + signal.SIGTERM)])
def test_a_command_ended_by_a_signal_has_a_shells_status(script, status):
    running = Mock(environment={}, ended=lambda _: False)
    assert command.serve(("sh", "-c", script), running) == status


def test_ctrl_c_during_a_start_reaches_the_command(monkeypatch):
    start = subprocess.Popen

    def interrupted(*given, **more):
        running = start(*given, **more)
        signal.raise_signal(signal.SIGINT)
        return running

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    assert command.serve(("sh", "-c", "exit 7"), Mock(environment={}, ended=lambda _: False)) == 7


def test_an_unexpected_end_of_the_emulator_is_reported(capsys):
    gone = Mock(environment={"AWS_REGION": "us-east-1"}, port=4566, ended=lambda _: True, log_tail=lambda: "no memory")
    with pytest.raises(EmulatorError, match=r"(?s)port 4566 exited unexpectedly.*no memory"):
        command.serve((), gone)
    assert command.serve(("sleep", "1"), gone) == 0
    assert capsys.readouterr().err.count("exited unexpectedly") == 1
