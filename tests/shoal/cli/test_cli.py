"""The command `shoal`: help, results and error messages."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from shoal.cli.commands import COMMANDS
from tests.shoal.cli.command import ACCOUNT, shoal_here
from tests.small_disk import NEEDS_A_SMALL_DISK, run_on_small_disk
from tests.waiting import PATIENCE, until

HEAVY = {"torch", "aws_cdk", "mrjob", "numba", "boto3", "botocore", "pydantic", "h5py", "rich"}
HELP = """
import io, json, sys
from contextlib import redirect_stdout, suppress
from shoal.cli.main import main
for verb in sys.argv[1:]:
    with redirect_stdout(io.StringIO()) as output, suppress(SystemExit):
        main([verb, "-h"])
    print(json.dumps([verb, output.getvalue(), list(sys.modules)]))
"""


def test_help_has_an_example_and_loads_no_heavy_library() -> None:
    output = subprocess.run([sys.executable, "-c", HELP, *COMMANDS], capture_output=True, text=True, check=True)
    lines = output.stdout.splitlines()
    assert len(lines) == len(COMMANDS)
    for verb, text, modules in map(json.loads, lines):
        assert f"shoal {verb}" in " ".join(text.partition("xample")[2].split())
        assert max(map(len, text.splitlines())) <= 80
        assert (verb, HEAVY & {*modules}) == (verb, set())


def test_help_shows_the_steps_of_a_deployment_and_every_command() -> None:
    output = shoal_here("--help").stdout
    way = [output.index(f"  shoal {verb} ") for verb in ("plan", "deploy", "preprocess", "train", "destroy")]
    assert way == sorted(way)
    assert [name for name in COMMANDS if f"\n  {name} " not in output] == []


def test_the_version_is_the_installed_one() -> None:
    done = shoal_here("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"shoal {version('shoal')}\n", "")


NO_ACCOUNT = {
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.mark.parametrize(
    ("command", "account"),
    [
        ("status ours", NO_ACCOUNT),
        ("status ours", ACCOUNT),
        ("preprocess --local --input s3://reviews/ --output out", ACCOUNT),
        ("predict --model s3://models/one", ACCOUNT),
        ("embed --local --input s3://none/texts --output out", ACCOUNT),
        ("dataset info s3://data/dataset.h5", ACCOUNT),
    ],
    ids=["credentials", "status", "preprocess", "predict", "embed", "dataset"],
)
def test_missing_network_or_credentials_are_reported(command, account, tmp_path, monkeypatch, messages) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        endpoint = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    places = {"AWS_ENDPOINT_URL": endpoint, "AWS_REGION": "us-east-1", "AWS_MAX_ATTEMPTS": "1"}
    done = shoal_here(*command.split(), **places, **account)
    assert done.returncode == 1
    messages.check(done.stderr.rstrip())


@pytest.mark.parametrize("name", ["x" * 300, "loop/x"], ids=["long", "loop"])
@pytest.mark.parametrize(
    "command",
    [
        "preprocess --local --input {} --output out",
        "preprocess --local --input here.json --output {}/out",
        "embed --local --input {} --output out",
        "report {}",
    ],
)
def test_a_path_that_the_system_refuses_is_one_message(command, name, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    Path("here.json").write_text('{"text": "good", "rating": 5}\n')
    done = shoal_here(*command.format(name).split())
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert name in done.stderr


@NEEDS_A_SMALL_DISK
def test_a_full_disk_is_reported_and_leaves_no_file(reviews, tmp_path) -> None:
    command = f"shoal preprocess --local --input {reviews} --output small/out; echo status $?; ls -A small/out"
    done = run_on_small_disk(tmp_path, 200, command)
    assert done.stdout == "status 1\n", done.stderr
    assert "free some space" in done.stderr


def test_an_immediately_stopped_run_does_not_show_the_previous_result(dataset, model, tmp_path) -> None:
    shutil.copytree(model, tmp_path, dirs_exist_ok=True)
    (tmp_path / "summary.json").write_text('{"accuracy": 1.0}')
    options = ("--local", "--model", "lstm", "--epochs", "1", "--json", "--force")
    command = ["shoal", "train", *options, "--data", dataset, "--output", tmp_path]
    again = subprocess.Popen(list(map(os.fspath, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: not (tmp_path / "summary.json").exists(), every=0.01)
    again.send_signal(signal.SIGTERM)
    output, _ = again.communicate(timeout=PATIENCE)
    assert again.returncode == 143
    assert not output or json.loads(output)["stopped"] is True


def test_a_text_is_labelled_before_the_next_one_arrives(model) -> None:
    asked = subprocess.Popen(
        ["shoal", "predict", "--model", model], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert asked.stdin is not None
    assert asked.stdout is not None
    for text in ("good lamp", "bad lamp"):
        asked.stdin.write(f"{text}\n")
        asked.stdin.flush()
        assert asked.stdout.readline().endswith(f"\t{text}\n")
    asked.stdin.close()
    assert asked.wait(timeout=PATIENCE) == 0
