"""The real CDK command on the project's own app, with its output kept and shown when it fails."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from bootstrap.errors import ShoalError

ROOT = Path(__file__).parents[1]
"""The folder of app.py and cdk.json."""

_LAST_LINES = 25


def prepare(*, environment: Mapping[str, str], assembly: Path, log: Path) -> None:
    """Run `cdk bootstrap` for the account and region of `environment`; the same for every topology."""
    run(["bootstrap", "-c", "topology=demo"], environment=environment, assembly=assembly, log=log)


def run(
    arguments: Sequence[str], *, environment: Mapping[str, str], assembly: Path, log: Path, root: Path = ROOT
) -> None:
    """Run `cdk ARGUMENTS`; `assembly` is the folder for what it synthesises, `log` the file for what it says.

    Raises ShoalError with the end of the log when it fails, or when it is not installed.
    """
    command = ["cdk", *arguments, "--output", os.fspath(assembly), "--no-color", "--no-notices"]
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        with log.open("ab") as written:
            done = subprocess.run(
                command,
                cwd=root,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=subprocess.STDOUT,
                check=False,
            )
    except FileNotFoundError:
        raise ShoalError("the command `cdk` is not installed; run `make setup`, and add .venv/bin to PATH") from None
    if done.returncode:
        last = "\n".join(log.read_text("utf-8", "replace").splitlines()[-_LAST_LINES:])
        raise ShoalError(f"`cdk {' '.join(arguments)}` failed; the end of {log}:\n{last}")
