"""A process ends when the process that started it is killed."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PARENT = """
import os, signal, subprocess, sys, time
from common import starter
kind, own = sys.argv[1], os.getpid()
child = [sys.executable, "-c", sys.argv[2]]
if kind == "fork":
    if not os.fork():
        starter.end_with_parent(own, signal.SIGKILL)
        print(flush=True)
else:
    command = starter.ending_with_this_process("sh", "-c", "echo; exec sleep 999") if kind == "other" else child
    subprocess.Popen(command, env={**os.environ, **starter.ends_with_this_process()})
time.sleep(999)
"""
CHILD = """
import signal, sys, time
from common import starter
starter.END_SECONDS, starter._LOOK_SECONDS = 0, 0.01
if "stuck" in "KIND":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
starter.end_with_starter()
print(flush=True)
time.sleep(999)
"""


@pytest.mark.parametrize("kind", ["ours", "ours, but stuck", "other", "fork"])
def test_a_process_ends_after_its_starter_was_killed(kind):
    command = [sys.executable, "-c", PARENT, kind, CHILD.replace("KIND", kind)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.read(1) == b"\n"
        parent.kill()
        assert parent.stdout.read() == b""  # the end of the pipe, which the child also holds


def test_a_process_ends_if_its_starter_ended_before_it_could_ask():
    child = "from common import starter; starter.end_with_starter(); input()"
    environment = {**os.environ, "SHOAL_STARTER": "1"}
    done = subprocess.run([sys.executable, "-c", child], env=environment, stdin=subprocess.PIPE, check=False)
    assert done.returncode == -15


ENDING = ("ends_with_this_process()", "ending_with_this_process(", "end_with_parent(")
WITHOUT = {
    "bootstrap/node/host.py: main": "the agent of a host outlives the command",
    "bootstrap/node/machine.py: run_command": "it has a time limit",
    "bootstrap/node/processes.py: start": "programs outlive the agent; their parent processes outlive nothing",
    "trainer/managed.py: _gpus": "it counts GPUs, and ends",
}


def starts() -> Iterator[tuple[str, str]]:
    """Yield the file and function of each start of a process in Shoal's programs, and the text of the function."""
    for room in ("bootstrap", "common", "corpus", "experiments", "infra", "jobs", "shoal", "trainer"):
        for path in (ROOT / room).rglob("*.py"):
            text = path.read_text("utf-8")
            if "subprocess." not in text and "os.fork(" not in text:
                continue
            for function in ast.walk(ast.parse(text)):
                if not isinstance(function, ast.FunctionDef):
                    continue
                body = "\n".join(text.splitlines()[function.lineno : function.end_lineno])
                if any(f"{call}(" in body for call in ("subprocess.Popen", "subprocess.run", "os.fork")):
                    yield f"{path.relative_to(ROOT)}: {function.name}", body


def test_every_process_that_shoal_starts_ends_with_its_starter():
    found = dict(starts())
    assert len(found) > len(WITHOUT) + 5
    without = {where for where, body in found.items() if not any(each in body for each in ENDING)}
    assert without == {*WITHOUT}


@pytest.mark.parametrize(
    "program", ["bootstrap/node/stage.py", "corpus/stream/__main__.py", "trainer/__main__.py", "trainer/launch.py"]
)
def test_a_program_that_shoal_starts_asks_for_the_end_of_its_starter(program):
    assert "    end_with_starter()\n" in (ROOT / program).read_text("utf-8")
