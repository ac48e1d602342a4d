"""An interrupt is raised, whatever code it arrives in."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bootstrap.interrupt import Interrupt, interrupt_behind
from tests.waiting import PATIENCE

# A verb that waits, and does so meanwhile; `fall` is a Ctrl-C at this very place.
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
    {meanwhile}
    time.sleep(10)
    return 0

commands.run = run
sys.exit(main([]))
"""


def ended(meanwhile: str) -> "subprocess.CompletedProcess[str]":
    code = VERB.format(meanwhile="\n    ".join(meanwhile.splitlines()))
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, cwd=Path(__file__).parents[2]
    )


@pytest.mark.parametrize(
    ("meanwhile", "status"),
    [
        ("fall()", 130),
        ("fall(signal.SIGTERM)", 143),
        ("try:\n    fall()\nexcept:\n    pass", 130),
        ("for _ in range(3):\n    try:\n        fall(signal.SIGTERM)\n    except:\n        pass", 143),
        ("try:\n    fall()\nfinally:\n    None.anything", 130),
    ],
)
def test_an_interrupt_arrives_even_if_code_drops_it_or_fails(meanwhile: str, status: int) -> None:
    done = ended(meanwhile)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "shoal: interrupted\n")


def test_an_interrupt_in_the_deletion_of_an_object_arrives() -> None:
    done = ended("Dropped()")
    assert done.returncode == 130
    assert done.stderr.endswith("shoal: interrupted\n")


def test_a_handled_interrupt_is_not_raised_again() -> None:
    heard = (
        "from bootstrap.interrupt import mark_handled\n"
        "try:\n    fall()\nexcept KeyboardInterrupt as asked:\n    mark_handled(asked)"
    )
    assert ended(f"{heard}\ntime.sleep(0.5)\nreturn 7").returncode == 7


def test_an_error_that_has_nothing_to_do_with_it_stays_an_error() -> None:
    done = ended("None.anything")
    assert done.returncode == 1
    assert "AttributeError" in done.stderr
    assert "interrupted" not in done.stderr


def test_an_interrupt_is_found_behind_an_error() -> None:
    asked = Interrupt(signal.SIGTERM)

    def fails_on_its_way() -> None:
        try:
            raise asked
        finally:
            raise ValueError

    with pytest.raises(ValueError) as late:  # noqa: PT011
        fails_on_its_way()
    assert interrupt_behind(late.value) is asked
    assert interrupt_behind(ValueError()) is None
