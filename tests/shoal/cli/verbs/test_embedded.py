"""`shoal embedded` runs a command against its own emulator."""

import os
import signal
import subprocess
import sys

from tests.processes import MARK, left_behind
from tests.shoal.cli.command import ACCOUNT, shoal_here
from tests.waiting import PATIENCE

ENDED = "http://127.0.0.1:9"
"""Address of an emulator that has ended. A command with its own emulator ignores it."""


def test_a_command_runs_against_the_emulator_and_handles_ctrl_c_itself(tmp_path) -> None:
    code = (
        "import boto3, sys, time\n"
        "s3 = boto3.client('s3')\n"
        "s3.create_bucket(Bucket='ours')\n"
        "try:\n    print(*sys.argv[1:], flush=True); time.sleep(300)\n"
        "except KeyboardInterrupt:\n    print(s3.list_buckets()['Buckets'][-1]['Name']); sys.exit(7)"
    )
    process = subprocess.Popen(
        ["shoal", "embedded", "--", sys.executable, "-c", code, "--port", "--", "s3://ours"],
        env={**os.environ, "AWS_ENDPOINT_URL": ENDED, MARK: os.fspath(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "--port -- s3://ours\n"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output) == (7, "ours\n"), errors
    assert left_behind(os.fspath(tmp_path)) == []


def test_a_plan_names_the_command_that_starts_an_emulator() -> None:
    places = {"AWS_ENDPOINT_URL": ENDED, "AWS_REGION": "us-east-1", "AWS_MAX_ATTEMPTS": "1"}
    assert "start `shoal embedded`" in shoal_here("plan", "starter", **places, **ACCOUNT).stdout
