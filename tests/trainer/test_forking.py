"""Programs that a warm parent starts behave like processes of `subprocess`."""

import os
import signal
import subprocess

import pytest

from tests.forking import PIPE, STDOUT

REPORTS = """
import os, sys
print(sys.argv[1:], os.getcwd(), os.environ["MINE"], "HOME" in os.environ, "torch" in sys.modules, flush=True)
sys.stderr.write("error\\n")
sys.exit(7)
"""
WAITS = "import time\nprint('runs', flush=True)\ntime.sleep(120)\n"


@pytest.fixture
def start(warm_parent, tmp_path):
    """Return the function `start(source, ...)`, which starts a program with this source."""

    def program(source, *arguments, stderr=PIPE):
        script = tmp_path / "program.py"
        script.write_text(source)
        return warm_parent.start(script, *arguments, environment={"MINE": "yes"}, stdout=PIPE, stderr=stderr)

    return program


def test_a_program_has_its_arguments_folder_environment_outputs_and_status(start, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for stderr, errors in ((PIPE, "error\n"), (STDOUT, None)):
        process = start(REPORTS, "a b", "c", stderr=stderr)
        expected = f"['a b', 'c'] {tmp_path} yes False True\n" + ("" if errors else "error\n")
        assert process.communicate(60) == (expected, errors)
        assert process.returncode == process.poll() == process.wait() == 7


def test_a_running_program_can_be_killed_while_another_ends(start):
    with start(WAITS) as process:
        assert process.stdout.readline() == "runs\n"
        assert os.getpgid(process.pid) == os.getpgid(0)
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        assert start(REPORTS).wait(60) == 7
        process.kill()
        assert process.wait(60) == -signal.SIGKILL
        process.kill()  # it has ended
