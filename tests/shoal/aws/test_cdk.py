"""The CDK command ends with all its child processes, whatever ends it."""

import os
import signal
import subprocess

import psutil
import pytest

from shoal.aws import cdk
from tests.processes import MARK, left_behind, marked
from tests.waiting import PATIENCE, until


def test_an_interrupt_ends_the_app_with_the_command(tmp_path, monkeypatch):
    command, app = tmp_path / "bin" / "cdk", tmp_path / "app"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\nsleep 300 &\necho $! > {app}.new\nmv {app}.new {app}\nwait\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")

    def interrupt():
        if app.exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cdk.run(["deploy"], environment={}, assembly=tmp_path, log=tmp_path / "log", root=tmp_path, watch=interrupt)
    number = int(app.read_text())
    assert not psutil.pid_exists(number) or psutil.Process(number).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("started", [pytest.param("aws-cdk", marks=pytest.mark.soak), "jsii-runtime.js"])
def test_ctrl_c_ends_cdk_without_a_traceback(started, tmp_path):
    mark = os.fspath(tmp_path)
    command = ["cdk", "synth", "-c", "topology=demo", "--quiet", "--output", os.fspath(tmp_path / "assembly")]
    running = subprocess.Popen(
        command, cwd=cdk.ROOT, env={**os.environ, MARK: mark}, stderr=subprocess.PIPE, text=True, process_group=0
    )
    until(lambda: any(started in line for line in marked(mark)))
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does
    _, printed = running.communicate(timeout=PATIENCE)
    assert running.returncode != 0
    assert "Traceback" not in printed
    assert left_behind(mark) == []
