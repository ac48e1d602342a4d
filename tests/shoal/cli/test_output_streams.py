"""Output is UTF-8 in every locale, and failed writes to standard output are reported."""

import os
import subprocess

import pytest

from tests.shoal.cli.command import shoal_here
from tests.waiting import PATIENCE

PLAIN = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))}
TEXT = "café très bon 日本"


def run(command: str, stdin: str = "", **environment: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        ["sh", "-c", command],
        input=stdin.encode(),
        env={**PLAIN, **environment},
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )


def test_answers_are_utf_8_in_every_locale(model) -> None:
    environment = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "latin-1"}
    done = run(f"shoal predict --model {model}", TEXT, **environment)
    assert (done.returncode, done.stdout.decode().rstrip().split("\t")[-1]) == (0, TEXT)


@pytest.mark.parametrize("command", ["predict --model {model}", "--version"])
def test_a_full_standard_output_is_reported(command, model, messages) -> None:
    done = run(f"shoal {command.format(model=model)} >/dev/full", "good\n")
    assert done.returncode == 1
    messages.check(done.stderr.decode().rstrip())


def test_a_closed_pipe_ends_a_command_quietly(model) -> None:
    done = run(f"(shoal predict --model {model}; echo $? >&2) | true", "good\n" * 100_000)
    assert done.stderr == b"1\n"


def test_a_command_accepts_a_closed_standard_output() -> None:
    done = run("shoal plan starter --offline >&-")
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_argument_that_is_not_utf_8_is_refused(tmp_path, monkeypatch, messages) -> None:
    monkeypatch.chdir(tmp_path)
    done = shoal_here("preprocess", "--local", "--input", "x", "--output", os.fsdecode(b"out\xff"))
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    messages.check(done.stderr.rstrip())
