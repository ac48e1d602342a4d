"""Runs the command `shoal`, in a new process or in this one."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from shoal.cli.main import main
from shoal.progress import Bars
from tests.waiting import PATIENCE

Done = subprocess.CompletedProcess[str]


def shoal(*arguments: str | Path, stdin: str | None = None, **environment: str) -> Done:
    """Run the command in a new process."""
    return subprocess.run(
        ["shoal", *map(os.fspath, arguments)],
        capture_output=True,
        text=True,
        input=stdin,
        env={**os.environ, **environment},
        timeout=PATIENCE,
        check=False,
    )


class Typed(io.TextIOWrapper):
    """Standard input that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def leave_out_progress(patch: pytest.MonkeyPatch) -> None:
    """Let a slow command print no more lines than a fast one."""
    patch.setitem(Bars.__init__.__kwdefaults__, "line_seconds", 3600.0)


def shoal_here(*arguments: str | Path, stdin: bytes = b"", terminal: bool = False, **environment: str) -> Done:
    """Run the command in this process, which is faster: a new process would spend most of its time on imports.

    `stdin`: standard input, from a terminal if `terminal` is true.
    """
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        leave_out_progress(patch)
        patch.setattr(sys, "stdin", (Typed if terminal else io.TextIOWrapper)(io.BytesIO(stdin)))
        for name, value in environment.items():
            patch.setenv(name, value)
        try:
            status = main(list(map(os.fspath, arguments)))
        except SystemExit as end:
            status = int(str(end.code))
    return Done(arguments, status, out.getvalue(), err.getvalue())


ACCOUNT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


def content_of(file: str | bytes | list[Any]) -> bytes:
    """Return the content of a file in a table of commands.

    A list has texts, and groups of lines to repeat `times` times; `#` in a line is replaced by the repetition's number.
    """
    if isinstance(file, bytes):
        return file
    parts = (
        part
        if isinstance(part, str)
        else "".join(f"{line}\n".replace("#", str(n)) for n in range(part["times"]) for line in part["lines"])
        for part in file
    )
    return "".join(parts).encode()
