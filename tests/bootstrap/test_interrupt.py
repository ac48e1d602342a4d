"""Interrupts are raised in any code, and swallowed ones are raised again."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bootstrap.interrupt import Interrupt, interrupt_behind
from tests.waiting import PATIENCE

# A command that runs the code under test and then waits. `fall` sends a signal at that point.
VERB = """
import os, signal, sys, time
import bootstrap.cli.commands as commands
from bootstrap.cli.main import main
from tests.waiting import PATIENCE

def fall(number=signal.SIGINT):
    os.kill(os.getpid(), number)
    time.sleep(10)

class Dropped:
    def __del__(self):
        fall()

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
        ("try:\n    fall()\nexcept:\n    pass", 130),
        ("for _ in range(3):\n    try:\n        fall(signal.SIGTERM)\n    except:\n        pass", 143),
        ("try:\n    fall()\nfinally:\n    None.anything", 130),
    ],
)
def test_a_swallowed_interrupt_is_raised_again(body, status):
    done = ended(body)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "shoal: interrupted\n")


def test_an_interrupt_during_object_deletion_is_raised():
    done = ended("Dropped()")
    assert done.returncode == 130
    assert done.stderr.endswith("shoal: interrupted\n")


def test_a_handled_interrupt_is_not_raised_again():
    code = (
        "from bootstrap.interrupt import mark_handled\n"
        "try:\n    fall()\nexcept KeyboardInterrupt as asked:\n    mark_handled(asked)"
    )
    assert ended(f"{code}\ntime.sleep(0.5)\nreturn 7").returncode == 7


def test_an_unrelated_error_stays_an_error():
    done = ended("None.anything")
    assert done.returncode == 1
    assert "AttributeError" in done.stderr
    assert "interrupted" not in done.stderr


def test_an_interrupt_is_found_behind_an_error():
    asked = Interrupt(signal.SIGTERM)

    def fails_on_its_way():
        try:
            raise asked
        finally:
            raise ValueError

    with pytest.raises(ValueError) as late:  # noqa: PT011
        fails_on_its_way()
    assert interrupt_behind(late.value) is asked
    assert interrupt_behind(ValueError()) is None
