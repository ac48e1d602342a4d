"""`shoal embedded`: a command run against its own emulator, and messages when no emulator is running."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bootstrap.cli.main import main
from tests.bootstrap.cli.command import ACCOUNT
from tests.processes import MARK, left_behind
from tests.waiting import PATIENCE


def emulator(mark: Path, *arguments: str) -> "subprocess.Popen[str]":
    # The environment names an emulator that has ended, which the command must ignore.
    return subprocess.Popen(
        ["shoal", "embedded", *arguments],
        env={
            **os.environ,
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
            MARK: os.fspath(mark),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )


def test_a_command_runs_against_the_emulator_and_handles_ctrl_c_itself(tmp_path: Path) -> None:
    code = (
        "import boto3, sys, time\n"
        "s3 = boto3.client('s3')\n"
        "s3.create_bucket(Bucket='ours')\n"
        "try:\n    print(*sys.argv[1:], flush=True); time.sleep(300)\n"
        "except KeyboardInterrupt:\n    print(s3.list_buckets()['Buckets'][-1]['Name']); sys.exit(7)"
    )
    running = emulator(tmp_path, "--", sys.executable, "-c", code, "--port", "--", "s3://ours")
    assert running.stdout is not None
    assert running.stdout.readline() == "--port -- s3://ours\n"
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does
    output, errors = running.communicate(timeout=PATIENCE)
    assert (running.returncode, output) == (7, "ours\n"), errors
    assert left_behind(os.fspath(tmp_path)) == []


def test_a_missing_command_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embedded", "--", "no-such-command"]) == 1
    assert "the command no-such-command does not exist; check the command after --" in capsys.readouterr().err


def test_a_missing_emulator_is_also_reported_for_files_and_plans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        endpoint = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    places = {"AWS_ENDPOINT_URL": endpoint, "AWS_REGION": "us-east-1", "AWS_MAX_ATTEMPTS": "1", **ACCOUNT}
    for name, value in places.items():
        monkeypatch.setenv(name, value)
    for reading in (
        ("preprocess", "--local", "--input", "s3://reviews/", "--output", str(tmp_path / "out")),
        ("predict", "--model", "s3://models/one"),
        ("embed", "--local", "--input", "s3://none/texts", "--output", str(tmp_path / "out")),
        ("dataset", "info", "s3://data/dataset.h5"),
    ):
        assert main(list(reading)) == 1
        assert "start `shoal embedded`" in " ".join(capsys.readouterr().err.split())
    main(["plan", "starter"])
    assert "start `shoal embedded`" in " ".join(capsys.readouterr().out.split())
