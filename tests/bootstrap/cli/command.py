"""The command `shoal`, as another process or in this one."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

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


class Typed(io.TextIOWrapper):
    """Standard input that is a terminal."""

    def isatty(self) -> bool:
        return True


def shoal_here(*arguments: str | Path, given: bytes = b"", terminal: bool = False, **environment: str) -> Done:
    """The command by its own code in this process: most of a process would be imports. With `terminal`, what is given
    is typed."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "stdin", (Typed if terminal else io.TextIOWrapper)(io.BytesIO(given)))
        for name, value in environment.items():
            patch.setenv(name, value)
        try:
            status = main(list(map(os.fspath, arguments)))
        except SystemExit as end:
            status = int(str(end.code))
    return Done(arguments, status, out.getvalue(), err.getvalue())


ACCOUNT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


def content_of(file: str | bytes | list[Any]) -> bytes:
    """The content of a file in a table of commands: a text, or texts and lines that are written so many times, with
    their number in place of #."""
    if isinstance(file, bytes):
        return file
    parts = (
        part
        if isinstance(part, str)
        else "".join(f"{line}\n".replace("#", str(n)) for n in range(part["times"]) for line in part["lines"])
        for part in file
    )
    return "".join(parts).encode()
