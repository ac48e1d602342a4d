"""Interrupts end a command, also behind an error."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

# A command that runs the code under test and then waits. `fall` sends a signal at that point.
VERB = """
import os, signal, sys, time
import shoal.cli.commands as commands
from shoal.cli.main import main
from tests.waiting import PATIENCE

def fall(number=signal.SIGINT):
    os.kill(os.getpid(), number)
    time.sleep(10)

def run(arguments, interrupt):
    signal.signal(signal.SIGTERM, interrupt)
    {body}
    time.sleep(10)
    return 0

commands.run = run
sys.exit(main([]))
"""


def ended(body):
    code = VERB.format(body="\n    ".join(body.splitlines()))
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, cwd=Path(__file__).parents[2]
    )


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("fall()", 130),
        ("fall(signal.SIGTERM)", 143),
        ("try:\n    fall()\nfinally:\n    None.anything", 130),
    ],
)
def test_the_exit_status_is_that_of_the_signal(body, status):
    done = ended(body)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "shoal: interrupted\n")


def test_an_unrelated_error_stays_an_error():
    done = ended("None.anything")
    assert done.returncode == 1
    assert "AttributeError" in done.stderr
    assert "interrupted" not in done.stderr
