"""Failures of ranks: the launcher's reports and restarts."""

import os
import signal
import socket
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from torch.distributed import run
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

from tests.forking import PIPE, STDOUT
from tests.trainer.runs import finish, lines, notes, summary, wait_for_lines
from trainer import launch
from trainer.config import RANK_ENVIRONMENT
from trainer.distributed import failures
from trainer.distributed.failures import Failure, FailureKind
from trainer.launch import main
from trainer.rank_processes import OPTIONS, split_rank_prefix

FAILING = Path(__file__).with_name("failing.py")

LOST = Failure(
    kind=FailureKind.CONSEQUENCE, time=5.0, what="rank 0 lost the other ranks", where="at step 7", then=" (gone)"
)
BROKEN = Failure(kind=FailureKind.CAUSE, time=5.2, what="rank 1 failed with KeyError ('x')", where="at step 7")
AGREED = Failure(kind=FailureKind.FINAL, time=5.1, what="the loss is nan at step 7; lower --learning-rate")


def killed(number: signal.Signals, time: int) -> ProcessFailure:
    failed = ProcessFailure(local_rank=0, pid=1, exitcode=-number, error_file="none")
    failed.timestamp = time
    return failed


@pytest.fixture(autouse=True)
def environment():
    """Restore the environment, which the launcher changes."""
    with patch.dict(os.environ):
        yield


@pytest.fixture
def launched(monkeypatch, capsys):
    """Return the function `launched(attempt, ...)`, which returns the launcher's status and the failures that it
    reported.

    Each attempt is a dictionary of failures by rank, which may include killed ranks, or an exception.
    """

    def start(*attempts, started=True):
        calls: list[SimpleNamespace] = []

        def attempt(arguments):
            calls.append(arguments)
            failures_by_rank = attempts[len(calls) - 1]
            if started:
                failures.mark_started()
            if isinstance(failures_by_rank, BaseException):
                raise failures_by_rank
            for rank, failure in failures_by_rank.items():
                if isinstance(failure, Failure):
                    failures.write_failure(failure, rank)
            if failures_by_rank:
                reported = {rank: killed(signal.SIGTERM, 9) for rank in failures_by_rank}
                raise ChildFailedError(
                    "trainer",
                    reported | {rank: it for rank, it in failures_by_rank.items() if isinstance(it, ProcessFailure)},
                )

        monkeypatch.setenv(failures.FOLDER, "")
        monkeypatch.setenv(failures.LOST, "")
        monkeypatch.setattr(run, "run", attempt)
        status = main(["--master-port=1000", "--max-restarts=3", "-m", "trainer", "--data", "x"])
        reported = [failures.parse(line) for line in capsys.readouterr().err.splitlines()]
        return status, [failure for failure in reported if failure], calls

    return start


def test_the_cause_is_reported_and_not_its_consequences(launched):
    _, reported, calls = launched({0: LOST, 1: BROKEN}, {})
    assert reported == [BROKEN]
    assert [each.master_port for each in calls] == [1000, 1001]
    assert [each.training_script_args[-1] for each in calls] == ["x", "--resume"]
    assert failures.previous_failure() == BROKEN


def test_a_killed_rank_is_reported_with_the_step_of_its_peers_unless_torchrun_killed_it(launched, messages):
    status, reported, _ = launched({0: LOST, 1: killed(signal.SIGKILL, 25), 2: killed(signal.SIGTERM, 6)}, {})
    assert status == 0
    messages.check(reported[0])
    _, reported, _ = launched({0: LOST, 1: killed(signal.SIGTERM, 5), 2: killed(signal.SIGKILL, 26)}, {})
    assert reported == [LOST]


@pytest.mark.parametrize(
    ("attempts", "started"),
    [
        ([{0: AGREED, 1: AGREED}], True),
        ([{0: LOST, 1: AGREED}], True),
        ([{0: LOST, 1: BROKEN}], False),
        ([{0: LOST, 1: BROKEN}, {0: LOST, 1: replace(BROKEN, time=99.0)}], True),
        ([{0: replace(LOST, where=f"at step {step}")} for step in range(4)], True),
    ],
    ids=["would come again", "on one rank", "before the first step", "at the same step", "too often"],
)
def test_final_and_repeated_failures_are_not_restarted(launched, attempts, started):
    status, reported, calls = launched(*attempts, started=started)
    assert status == 1
    assert [failure.attempt for failure in reported] == list(range(len(attempts)))
    assert len(calls) == len(attempts)


def test_success_and_a_stop_request_restart_nothing(launched):
    for attempt, expected in (({}, 0), (SignalException("asked", signal.SIGTERM), 143)):
        status, reported, calls = launched(attempt)
        assert (status, reported, len(calls)) == (expected, [], 1)


@pytest.fixture
def port():
    """Return a free port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        found: int = free.getsockname()[1]
    return found


def meeting(capsys: pytest.CaptureFixture[str], rank: int, port: int) -> str:
    """Run one machine of two while the other never comes. Return its error."""
    place = ["--nnodes=2", f"--node-rank={rank}", "--master-addr=127.0.0.1", f"--master-port={port}"]
    assert main([*place, "--rdzv-conf=timeout=1", "--max-restarts=3", "-m", "trainer"]) == 1
    reported = [failure for failure in map(failures.parse, capsys.readouterr().err.splitlines()) if failure]
    assert [failure.kind for failure in reported] == [FailureKind.FINAL]
    return str(reported[0])


@pytest.mark.parametrize("rank", [0, 1])
def test_a_missing_peer_is_reported(capsys, monkeypatch, port, rank):
    monkeypatch.setenv(failures.FOLDER, "")
    monkeypatch.setenv(failures.NODE, f"i-{rank}")
    message = meeting(capsys, rank, port)
    assert message.startswith(f"i-{rank} did not meet")
    assert f" 127.0.0.1:{port} (" in message
    assert "--master-addr and --master-port" in message


def test_an_address_in_use_is_reported(capsys, monkeypatch, messages):
    monkeypatch.setenv(failures.FOLDER, "")
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        messages.check(meeting(capsys, 0, port))


@pytest.fixture
def launcher(warm_parent):
    """Return the function `launcher(...)`, which starts `trainer.launch` with these arguments."""

    def start(*arguments, stdout=None, stderr=PIPE):
        program = ("-m", "trainer.launch", *arguments)
        return warm_parent.start(*program, environment=os.environ, stdout=stdout, stderr=stderr)

    return start


@pytest.fixture
def ranks(launcher, dataset, tmp_path):
    """Return the function `ranks(how, ...)`, which starts ranks that fail like failing.py."""

    def start(how, *options, place=("--standalone", "--nproc-per-node=2")):
        learning = ("--epochs", 1, "--global-batch", 64, "--threads", 1)
        arguments = ("--data", dataset, "--output", tmp_path, *learning, "--checkpoint-minutes", 1e-4, *options)
        return launcher(*place, "--max-restarts=3", FAILING, how, *arguments)

    return start


def test_each_line_of_a_rank_has_its_prefix_and_the_environment_of_ranks(launcher, tmp_path):
    script = tmp_path / "prints.py"
    own = f"{ {*RANK_ENVIRONMENT.items()} } <= {{*os.environ.items()}}"
    script.write_text(f"import os, sys\nprint(os.environ['RANK'], {own})\nsys.stderr.write('a\\n\\nb\\n')\n")
    process = launcher("--standalone", "--nproc-per-node=2", *OPTIONS, script, stdout=PIPE, stderr=STDOUT)
    text, _ = process.communicate()
    assert process.returncode == 0, text
    printed = [split_rank_prefix(line) for line in text.splitlines()]
    for rank in range(2):
        assert sorted(text for by, text in printed if by == rank) == ["", f"{rank} True", "a", "b"]


STOPS_SLOWLY = """
import signal, time
signal.signal(signal.SIGTERM, lambda *_: (print("asked", flush=True), time.sleep(1), print("stopped"), exit()))
print("runs", flush=True)
time.sleep(120)
"""


def test_a_stop_request_during_the_start_of_the_ranks_waits_until_torchrun_knows_them(monkeypatch):
    starters: list[str | None] = []

    def start(self, group):
        signal.signal(signal.SIGTERM, launch.processes._terminate_process_handler)  # as torchrun does
        signal.raise_signal(signal.SIGTERM)
        starters.append(os.environ.get("SHOAL_STARTER"))

    monkeypatch.setattr(launch, "_STOP_SIGNALS", (signal.SIGTERM,))
    monkeypatch.setattr(LocalElasticAgent, "_start_workers", start)
    with pytest.raises(SignalException):
        object.__new__(launch._Agent)._start_workers(None)
    assert (starters, os.environ.get("SHOAL_STARTER")) == ([str(os.getpid())], None)


def test_a_second_stop_request_does_not_interrupt_the_launcher(launcher, tmp_path):
    script = tmp_path / "rank.py"
    script.write_text(STOPS_SLOWLY)
    printed = []
    with launcher("--standalone", "--nproc-per-node=1", *OPTIONS, script, stdout=PIPE, stderr=None) as process:
        for line in process.stdout:
            printed.append(split_rank_prefix(line.strip())[1])
            if printed[-1] in ("runs", "asked"):
                process.send_signal(signal.SIGTERM)
        assert process.wait(240) == 128 + signal.SIGTERM
    assert printed == ["runs", "asked", "stopped"]


def assert_resumed(output: Path, lost: str) -> None:
    """Assert that the run lost a rank at step 20, and repeated only the steps since a checkpoint."""
    first, second = lines(output, "start")
    assert first["from_step"] == 0
    assert 0 < second["from_step"] < 20
    assert notes(output) == [f"{lost} at step 20; resuming from step {second['from_step']}"]
    steps = [line["step"] for line in lines(output, "step")]
    assert sorted(set(steps)) == list(range(1, 31))
    assert len(steps) <= 30 + 19 - second["from_step"]
    assert summary(output)["rows_seen"] == 1900


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "lost"),
    [("kill", "rank 1 was killed by signal 9 (SIGKILL)"), ("error", "rank 1 failed with KeyError ('a missing key')")],
)
def test_a_lost_rank_repeats_the_steps_since_the_last_checkpoint(ranks, tmp_path, how, lost):
    finish(ranks(how))
    assert_resumed(tmp_path, lost)


@pytest.fixture
def two_machines(ranks, port, monkeypatch):
    """Return the function `two_machines(how, ...)`, which starts two launchers, each with one rank."""

    def start(how, *options):
        for node in range(2):
            monkeypatch.setenv(failures.NODE, f"i-{node}")
            meeting = ("--nnodes=2", f"--node-rank={node}", "--master-addr=127.0.0.1", f"--master-port={port}")
            yield ranks(how, *options, place=meeting)

    return start


@pytest.mark.soak
def test_ranks_of_two_machines_restart_together(two_machines, tmp_path):
    nodes = list(two_machines("kill"))
    errors = [node.communicate()[1] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], errors
    assert_resumed(tmp_path, "rank 1 on i-1 was killed by signal 9 (SIGKILL)")


@pytest.mark.soak
def test_two_machines_end_together_if_one_is_asked_to_stop(two_machines, tmp_path):
    nodes = list(two_machines("none", "--epochs", 1000))
    wait_for_lines(nodes[0], tmp_path, "step")
    nodes[1].send_signal(signal.SIGTERM)
    errors = [node.communicate()[1] for node in nodes]  # torchrun would wait for 300 seconds
    assert summary(tmp_path)["stopped"] is True, errors
    assert [node.returncode for node in nodes] == [0, 143]
