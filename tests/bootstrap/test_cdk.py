"""The CDK command ends with all that it started, however that comes."""

import os
from pathlib import Path

import psutil
import pytest

from bootstrap import cdk


def test_an_interrupt_ends_the_app_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command, app = tmp_path / "bin" / "cdk", tmp_path / "app"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\nsleep 300 &\necho $! > {app}.new\nmv {app}.new {app}\nwait\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")

    def interrupt() -> None:
        if app.exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cdk.run(["deploy"], environment={}, assembly=tmp_path, log=tmp_path / "log", root=tmp_path, watch=interrupt)
    number = int(app.read_text())
    assert not psutil.pid_exists(number) or psutil.Process(number).status() == psutil.STATUS_ZOMBIE
