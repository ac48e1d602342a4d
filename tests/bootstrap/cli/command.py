"""The command `shoal`, as another process or in this one."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from bootstrap.cli.main import main
from tests.waiting import PATIENCE

Done = subprocess.CompletedProcess[str]


def shoal(*arguments: str | Path, given: str | None = None, **environment: str) -> Done:
    """The command as a process of its own."""
    return subprocess.run(
        ["shoal", *map(os.fspath, arguments)],
        capture_output=True,
        text=True,
        input=given,
        env={**os.environ, **environment},
        timeout=PATIENCE,
        check=False,
    )


def shoal_here(*arguments: str | Path, **environment: str) -> Done:
    """The command by its own code in this process, without a terminal: most of a process would be imports."""
    out, err = io.StringIO(), io.StringIO()
    with (
        Path(os.devnull).open() as nobody,
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        patch.setattr(sys, "stdin", nobody)
        for name, value in environment.items():
            patch.setenv(name, value)
        try:
            status = main(list(map(os.fspath, arguments)))
        except SystemExit as end:
            status = int(str(end.code))
    return Done(arguments, status, out.getvalue(), err.getvalue())


ACCOUNT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
