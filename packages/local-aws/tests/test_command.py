import re
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from shoal_local_aws import command
from shoal_local_aws.emulator_error import EmulatorError
from shoal_local_aws.processes import marked_processes
from shoal_local_aws.watchdog import MARK
from tests.local_aws.waiting import PATIENCE


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 0), (signal.SIGHUP, 128 + signal.SIGHUP)])
def test_without_a_command_it_prints_the_environment_and_runs_until_a_signal(sent, status):
    unignored = ("env", "--default-signal=HUP")  # the tests may run under nohup
    words = [*unignored, sys.executable, "-m", "shoal_local_aws.command"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr.readline().startswith("ready; ")
    process.send_signal(sent)
    printed, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == status, said
    (folder,) = re.findall("^export AWS_CONFIG_FILE=(.*)/aws/config$", printed, re.MULTILINE)
    assert not Path(folder).exists()
    assert marked_processes(MARK, folder) == []


def test_a_command_runs_against_the_emulator_and_its_status_is_returned(capfd):
    script = "aws sts get-caller-identity --query Account; exit 7"
    assert command.main(["--", "sh", "-c", script, "--port", "--"]) == 7
    assert capfd.readouterr().out == '"000000000000"\n'


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


def test_a_missing_command_is_named(capsys, messages):
    assert command.main(["--", "no-such-command"]) == 1
    messages.check(capsys.readouterr().err)


def test_an_unexpected_end_of_the_emulator_is_reported(capsys):
    gone = Mock(environment={"AWS_REGION": "us-east-1"}, port=4566, ended=lambda _: True, log_tail=lambda: "no memory")
    with pytest.raises(EmulatorError, match=r"(?s)port 4566 exited unexpectedly.*no memory"):
        command.serve((), gone)
    assert command.serve(("sleep", "1"), gone) == 0
    assert capsys.readouterr().err.count("exited unexpectedly") == 1
