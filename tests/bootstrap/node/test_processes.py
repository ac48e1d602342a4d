"""Programs of an agent: they outlive it, and another agent reads how they ended."""

import os
import signal

import pytest

from bootstrap.node.processes import Processes
from tests.waiting import until

NAME = "0a1b2c3d/train"
WAITS = """
import signal, sys, time
received = []
signal.signal(signal.SIGTERM, lambda *_: received.append(1))
print("ready", flush=True)
while not received:
    time.sleep(0.01)
time.sleep(0.3)
sys.exit(40 + len(received))
"""


@pytest.fixture
def processes(tmp_path):
    made = Processes(tmp_path / "programs")
    yield made
    for name in made.names():
        made.stop(name, kill=True)


@pytest.fixture
def start(processes, tmp_path):
    """Function that starts a program, waits until it has printed a text, and returns its log."""

    def start(program, printed="", **environment):
        log = tmp_path / "log"
        processes.start(NAME, ["-c", program], log, environment)
        until(lambda: not printed or log.read_text() == printed)
        return log

    return start


def ended(processes):
    """Wait for the end of the program, and return its state."""
    until(lambda: processes.state(NAME) != "running")
    return processes.state(NAME)


def test_a_program_ends_with_its_status_and_its_output_is_kept(processes, start, tmp_path):
    assert processes.state(NAME) is None
    log = start("import os, sys; print(os.environ['SAID']); sys.exit(7)", SAID="hello")
    assert (ended(processes), log.read_text()) == (7, "hello\n")
    (tmp_path / "programs" / NAME).with_name("stage.log").touch()  # a file is not a program
    assert processes.names() == [NAME]
    processes.forget(NAME)
    assert (processes.state(NAME), processes.names()) == (None, [])


def test_a_program_has_a_scope_of_its_own(processes, start, tmp_path, monkeypatch):
    script = tmp_path / "systemd-run"
    script.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do echo "$1"; shift; done\nshift\nexec "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("NODE_ROOT", str(tmp_path))
    log = start("print('done')")
    assert (ended(processes), log.read_text()) == (0, "--scope\n--quiet\n--collect\ndone\n")


def test_another_agent_finds_a_program_and_stops_it_once(processes, start, tmp_path):
    start(WAITS, "ready\n")
    other = Processes(tmp_path / "programs")
    assert other.state(NAME) == "running"
    assert other.stop(NAME)
    processes.stop(NAME)
    assert ended(other) == 41  # the second signal was not passed on
    assert not other.stop(NAME)


def test_a_program_without_a_known_exit_status_is_lost(processes, start):
    start(WAITS, "ready\n")
    assert processes.stop(NAME, kill=True)
    assert ended(processes) == "lost"


def test_a_reused_process_id_is_another_process(processes, tmp_path):
    folder = tmp_path / "programs" / NAME
    folder.mkdir(parents=True)
    (folder / "process").write_text(f"{os.getpid()} 1")
    assert processes.state(NAME) == "lost"
    assert not processes.stop(NAME)


def test_a_starting_program_counts_as_running_for_a_while(processes, tmp_path, monkeypatch):
    (tmp_path / "programs" / NAME).mkdir(parents=True)
    assert processes.state(NAME) == "running"
    monkeypatch.setattr("bootstrap.node.processes._START_SECONDS", -1)
    assert processes.state(NAME) == "lost"


def test_a_killed_program_has_the_signal_as_its_state(processes, start):
    start("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert ended(processes) == -signal.SIGKILL
