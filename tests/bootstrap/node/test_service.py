"""Agent as a process: which signals end it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import until

PROGRAM = """
import sys
from bootstrap.node.agent import serve
from bootstrap.node.node_documents import Member


serve("demo", Member(instance="i-00000000", address="10.0.0.1", gpus=1), store=sys.argv[1], notice=lambda: "")
"""


@pytest.mark.parametrize(("state", "status"), [("running", 143), ("stopping", 0)])
def test_sigterm_ends_an_agent_at_once_unless_the_machine_shuts_down(tmp_path, state, status):
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "systemctl").write_text(f"#!/bin/sh\necho {state}\n")
    (commands / "systemctl").chmod(0o755)
    (tmp_path / "store").mkdir()
    environment = {**os.environ, "PATH": f"{commands}:{os.environ['PATH']}", "NODE_ROOT": str(tmp_path)}
    agent = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path / "store")], env=environment)
    until(lambda: _handles_sigterm(agent.pid))
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(60) == status


def _handles_sigterm(process):
    caught = next(
        line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("SigCgt:")
    )
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
