import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock, call

import boto3
import pytest
from shoal_local_aws import watchdog
from shoal_local_aws.aws import EmbeddedAws
from shoal_local_aws.emulator_error import EmulatorError
from shoal_local_aws.processes import kill_marked, marked_processes
from shoal_local_aws.watchdog import MARK
from tests.local_aws.waiting import until

PACKAGES = Path(__file__).resolve().parents[1]

STARTS_A_NODE_THAT_SLEEPS = """
import os, sys, time
from pathlib import Path
import boto3
from shoal_local_aws import watchdog
from shoal_local_aws.aws import EmbeddedAws
with EmbeddedAws(Path(sys.argv[1])) as aws:
    os.environ.update(aws.environment)
    script = "setsid sleep 1000 & echo here > $NODE_ROOT/asleep; sleep 1000"
    boto3.client("ec2").run_instances(ImageId="ami-1", MinCount=1, MaxCount=1, UserData=script)
    while not list(Path(sys.argv[1]).glob("nodes/*/asleep")):
        time.sleep(0.01)
    print("ready", flush=True)
    time.sleep(1000)
"""


def test_a_taken_port_is_named(folder, messages):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        messages.hide(port, "PORT")
        with messages.raises(EmulatorError):
            EmbeddedAws(folder, port)


def test_an_emulator_that_does_not_start_shows_the_end_of_its_log(folder):
    emulator = EmbeddedAws(folder)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", emulator.port))
        taken.listen()
        with pytest.raises(EmulatorError, match=r"(?s)did not start on port .* already in use"), emulator:
            pass


def test_two_emulators_run_at_once(folder, monkeypatch):
    with EmbeddedAws(folder / "one") as one, EmbeddedAws(folder / "two") as two:
        for aws, name in ((one, "first"), (two, "second")):
            with monkeypatch.context() as patch:
                for key, value in aws.environment.items():
                    patch.setenv(key, value)
                s3 = boto3.Session().client("s3")
                s3.create_bucket(Bucket=name)
                assert [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]] == [name]


def test_its_environment_overrides_the_users_and_no_process_outlives_the_block(folder, monkeypatch):
    users = {"PROFILE": "production", "SESSION_TOKEN": "secret", "ENDPOINT_URL_STS": "http://127.0.0.1:9"}
    users |= {"IGNORE_CONFIGURED_ENDPOINT_URLS": "true", "USE_FIPS_ENDPOINT": "true"}
    for name, value in users.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    with EmbeddedAws(folder) as aws:
        for key, value in aws.environment.items():
            monkeypatch.setenv(key, value)
        identity = boto3.Session().client("sts").get_caller_identity()
        assert marked_processes(MARK, str(folder))
    assert identity["Account"] == "000000000000"
    assert marked_processes(MARK, str(folder)) == []


def test_processes_that_do_not_end_do_not_hide_an_error_of_the_block(folder, monkeypatch):
    monkeypatch.setattr("shoal_local_aws.aws.kill_marked", Mock(side_effect=TimeoutError("process 1 does not end")))
    with (
        pytest.warns(RuntimeWarning, match="process 1 does not end"),
        pytest.raises(KeyError, match="own"),
        EmbeddedAws(folder),
    ):
        raise KeyError("own")


def test_no_code_is_imported_from_the_working_folder(folder, monkeypatch):
    downloaded, ran = folder / "downloaded", folder / "ran"
    downloaded.mkdir(parents=True)
    for name in ("shoal_local_aws", "ministack"):
        (downloaded / f"{name}.py").write_text(f"open({str(ran)!r}, 'a').write('{name} ')\nraise SystemExit(1)\n")
    monkeypatch.chdir(downloaded)
    with EmbeddedAws(folder / "aws"):
        pass
    assert not ran.exists()


@pytest.mark.parametrize("victim", ["parent", "server"])
def test_no_process_outlives_a_killed(victim, folder):
    command = [sys.executable, "-c", STARTS_A_NODE_THAT_SLEEPS, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGES)}
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
    try:
        assert parent.stdout.readline() == b"ready\n"
        running = marked_processes(MARK, str(folder))
        assert len(running) >= 4  # the server, the node's shell and its two sleeps
        os.kill(parent.pid if victim == "parent" else min(running), signal.SIGKILL)
        until(lambda: not marked_processes(MARK, str(folder)))
    finally:
        parent.kill()
        parent.wait()
        kill_marked(MARK, str(folder))


def test_an_emulator_ends_after_its_watchdog_was_killed(monkeypatch):
    ended = Mock()
    monkeypatch.setattr(watchdog, "kill_marked", ended.kill_marked)
    monkeypatch.setattr(os, "_exit", ended.exit)
    watchdog.end_with(0, "folder")  # this process has another parent
    assert ended.mock_calls == [call.kill_marked(MARK, "folder"), call.exit(1)]
